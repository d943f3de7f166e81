"""Works through running bulk jobs, one item after another, each given to the function that decides single answers.

An item's result is written in the transaction of its decision, so a crash between or inside items repeats nothing and
loses nothing: the item is pending and unanswered, or it has its result. A refusal rolls its transaction back, and the
result is written in one of its own. Whoever holds a job does so until a database time only lest two contend; an item
guards itself against a second worker, and against an abort: PostgreSQL takes no result for a job that does not run.
"""

from __future__ import annotations

import logging
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.db.models import Q, QuerySet

from approvals import decisions, requests, signatures
from approvals.bulk import queries, rules, trail
from approvals.bulk.queries import Listed
from approvals.bulk.states import BulkJobStatus, BulkNoun, BulkResult
from approvals.decisions import Answered
from approvals.models import BulkItem, BulkJob, Decision, Signature
from approvals.step_up import Authentication
from checkpoint import clock, crash_points, occasions
from checkpoint.clock import Now
from checkpoint.errors import (
    AlreadyAnswered,
    ApprovalClosed,
    CaseClosed,
    CheckpointError,
    DecisionNotAllowed,
    Forbidden,
    StaleView,
)
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.states import ApprovalStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.transactions import one_transaction, require_transaction

log = logging.getLogger(__name__)

# Much longer than a turn; whoever dies in one is replaced after that time.
HOLD_SECONDS = 5.0


class _Stopped(Exception):
    """The job was aborted, or another worker was quicker: what this one began is rolled back."""


def work(*, seconds: float) -> bool:
    """Works on one running job that nobody is on, for about that long; says whether there was one.

    Every item is committed by itself, so ending after any of them is in order.
    """
    job = _take()
    if job is None:
        return False
    ends = time.monotonic() + seconds
    with occasions.begin(lambda: trail.by_bulk(job), request_id=f"bulk-{job.pk}"):
        while (listed := _next(job)) is not None:
            _answer(job, listed)
            if time.monotonic() > ends:
                break
        else:
            _finish(job)
    _let_go(job)
    return True


def anything_left() -> bool:
    """Whether there is a running job that nobody is on."""
    return _left_alone().exists()


def _left_alone() -> QuerySet[BulkJob]:
    nobody = Q(worked_until=None) | Q(worked_until__lt=Now())
    return BulkJob.objects.filter(nobody, status=BulkJobStatus.RUNNING)


@one_transaction
def _take() -> BulkJob | None:
    job = _left_alone().order_by("started_at").select_for_update(skip_locked=True).first()
    if job is not None:
        job.holder, job.worked_until = uuid.uuid4(), clock.now() + timedelta(seconds=HOLD_SECONDS)
        job.save(update_fields=["holder", "worked_until"])
    return job


@one_transaction
def _let_go(job: BulkJob) -> None:
    BulkJob.objects.filter(pk=job.pk, holder=job.holder).update(holder=None, worked_until=None)


def _next(job: BulkJob) -> Listed | None:
    """The next item, while the job runs and this worker holds it."""
    mine = queries.items(job).filter(
        result=BulkResult.PENDING, job__status=BulkJobStatus.RUNNING, job__holder=job.holder
    )
    return next(queries.listed(mine[:1]), None)


def _answer(job: BulkJob, listed: Listed) -> None:
    """One item and its result. What cannot be foreseen about one item must not keep the job from the others."""
    try:
        _decide(job, listed)
    except _Stopped:
        return
    except (AlreadyAnswered, CaseClosed, ApprovalClosed, StaleView) as moved:
        _settle(listed, BulkResult.MOVED, str(moved))
    except CheckpointError as refusal:
        _settle(listed, BulkResult.REFUSED, str(refusal))
    except (OperationalError, InterfaceError):
        raise  # the database is away, and knows nothing of this item: it stays pending
    except Exception:
        log.exception("item %s of bulk job %s", listed.item.number, job.pk)
        _settle(listed, BulkResult.REFUSED, "Something broke on our side; it was logged. Answer this one by itself.")
    crash_points.reach("bulk/after_commit", listed.step.name)


def _decide(job: BulkJob, listed: Listed) -> None:
    """The answer, by the function for single ones (S16), with what was frozen and with the account as it is now."""
    kind, recorded = DecisionKind(job.kind), list[Answered]()
    if refusal := rules.refusal(kind, listed.facts):
        raise DecisionNotAllowed(refusal)
    person = User.objects.filter(bulk_jobs=job.pk).first()
    if person is None:
        raise Forbidden(f"The account of {job.person_name} does not exist any more.")

    def alongside(answered: Answered) -> None:
        decision = answered if isinstance(answered, Decision) else None
        _record(listed, BulkResult.DONE, _still_needed(answered), decision)
        recorded.append(answered)

    item = listed.item
    common: dict[str, Any] = {"kind": kind, "person": person, "channel": trail.CHANNEL, "reason": job.reason}
    common |= {"arguments_hash": item.arguments_hash, "alongside": alongside}
    common |= {"authentication": Authentication(job.authenticated_at, answered_at=job.started_at)}
    if job.noun is BulkNoun.CASE:
        earlier: Answered = decisions.decide(case_id=listed.about.pk, step_version=item.step_version, **common)
    else:
        earlier = requests.answer(approval_id=listed.about.pk, **common)
    if not recorded:
        at = earlier.decided_at if isinstance(earlier, Decision) else earlier.signed_at
        raise CaseClosed(f"You gave this answer already, at {at:%Y-%m-%d %H:%M:%S} UTC.")


def _still_needed(answered: Answered) -> str:
    """What a recorded answer has not done yet; empty where it did all."""
    if isinstance(answered, Signature):
        return signatures.still_needed(answered)
    approval = answered.approval
    if approval is None or approval.status != ApprovalStatus.PENDING:
        return ""
    given = approval.decisions.filter(kind=DecisionKind.APPROVE).count()
    needed = ApprovalRule.from_json(approval.rule).needed
    return f"Recorded as approval {given} of {needed}; it waits for another person."


@one_transaction
def _settle(listed: Listed, result: BulkResult, message: str) -> None:
    """The result of an item for which nothing was decided."""
    with suppress(_Stopped):
        _record(listed, result, message, None)


def _record(listed: Listed, result: BulkResult, message: str, decision: Decision | None) -> None:
    """Writes a result, once, while the job runs. Raises _Stopped where it does not, or where there is one."""
    require_transaction()
    job = BulkJob.objects.select_for_update().get(pk=listed.item.job_id)
    pending = BulkItem.objects.filter(pk=listed.item.pk, result=BulkResult.PENDING)
    now = clock.now()
    if job.status != BulkJobStatus.RUNNING or not pending.update(
        result=result, message=message, decision=decision, at=now
    ):
        raise _Stopped
    about = f"item {listed.item.number}: {job.noun} {listed.about.pk}"
    details = {"message": message} if message else {}
    trail.note(job, trail.by_bulk(job), "answer_item", at=now, subject=about, after=result, details=details)
    crash_points.reach("bulk/before_commit", listed.step.name)


@one_transaction
def _finish(job: BulkJob) -> None:
    """Done is a job that runs and of which every item has its result; the totals are in its audit stream."""
    locked, totals = BulkJob.objects.select_for_update().get(pk=job.pk), trail.totals(job)
    if locked.status != BulkJobStatus.RUNNING or totals.pending:
        return
    locked.finish()
    locked.ended_at = clock.now()
    locked.save(update_fields=["status", "ended_at"])
    actor = trail.by_bulk(locked)
    trail.note(locked, actor, "finish", before="running", after=locked.status, details=totals.as_json())
