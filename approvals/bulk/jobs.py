"""A bulk job from its preparation to its end, as a person acts on it: create, start, abort. One transaction each.

Preparing answers nothing: it freezes what is selected into items (S33). What starting sets going is `work`, which
gives each item to the function that decides single answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.dispatch import Signal

from approvals.bulk import trail
from approvals.bulk.queries import job_visible_to
from approvals.bulk.selection import PLURAL, Frozens, Selection, cap, freeze
from approvals.bulk.states import ANSWERS, BulkJobStatus, BulkNoun
from approvals.decisions import REASON_LIMIT
from approvals.models import BulkItem, BulkJob
from approvals.permissions import DECIDE_APPROVAL, DECIDE_CASE
from approvals.step_up import UNKNOWN, Authentication
from checkpoint import audit, clock, reasons
from checkpoint.errors import BulkJobClosed, DecisionIncomplete, Forbidden, NotFound
from checkpoint.models.identifiers import uuid7
from checkpoint.people import Actor
from checkpoint.permissions import ADMINISTER_WORKFLOW, require
from checkpoint.states import Decision as DecisionKind
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction

_RIGHTS = {BulkNoun.CASE: DECIDE_CASE, BulkNoun.APPROVAL: DECIDE_APPROVAL}

# Sent after the commit: there is work. Only a doorbell; the sweep finds what is running and has nobody on it.
started = Signal()


def create(
    *, person: User, channel: str, kind: DecisionKind, selection: Selection, reason: str, job_id: UUID | None = None
) -> BulkJob:
    """Freezes what is selected into the items of a draft.

    Args:
        channel: by which way it is prepared.
        reason: why; each answer will carry it (S35).
        job_id: the new job's id, chosen by a caller who may send the same request twice; the second gets the first job.

    Raises:
        DecisionIncomplete: the reason, the answer or the selection is missing or does not fit.
        Forbidden: the person may not give such answers at all.
        NotFound: something selected does not exist, or the person may not see it.
    """
    offered = [each for kinds in ANSWERS.values() for each in kinds]
    if kind not in offered:
        raise DecisionIncomplete(f"kind: choose one of {', '.join(offered)}; the rest is answered one by one.")
    draft = BulkJob(
        id=job_id or uuid7(), person=person, person_name=person.get_username(), channel=channel, kind=kind.value,
        reason=_complete(reason), filter=selection.matching.as_json() if selection.matching else None, cap=cap(),
    )  # fmt: skip
    with _denials(person, channel, f"prepare {kind} in bulk", "bulk jobs"):
        return _create(draft, selection)


@one_transaction
def _create(draft: BulkJob, selection: Selection) -> BulkJob:
    person = User.objects.get(username=draft.person_name)
    frozen = freeze(person, draft.noun, selection)  # what one cannot see comes before what one may not do
    require(person, _RIGHTS[draft.noun], action=f"answer {PLURAL[draft.noun]}")
    draft.matched, draft.count, draft.frozen_at = frozen.matched, len(frozen.rows), clock.now()
    BulkJob.objects.bulk_create([draft], ignore_conflicts=True)
    job = BulkJob.objects.select_for_update().get(pk=draft.pk)
    if job.person_id != person.pk:
        raise NotFound(f"There is no bulk job {job.pk} that you may see.")
    if not job.items.exists():
        _insert_items(job, frozen)
        audit.open_streams([trail.stream(job)])
        trail.note(job, Actor(job.person_name, job.channel), "create", after=job.status, details=_asked(job))
    return job


def _insert_items(job: BulkJob, frozen: Frozens) -> None:
    column = f"{job.noun}_id"
    BulkItem.objects.bulk_create(
        BulkItem(
            job=job, number=number, step_version=row.step_version, arguments_hash=row.arguments_hash, **{column: row.id}
        )
        for number, row in enumerate(frozen.rows, start=1)
    )


def _asked(job: BulkJob) -> dict[str, Any]:
    return {"kind": job.kind, "filter": job.filter, "matched": job.matched, "count": job.count, "cap": job.cap}


def _complete(reason: str) -> str:
    """Checked here as for a single answer, so that no job is prepared of which every item would be refused."""
    stripped = reason.strip()
    wanted = f"say in at most {REASON_LIMIT} characters why; every answer keeps it in the audit trail."
    if found := reasons.problem(stripped, wanted=wanted, limit=REASON_LIMIT):
        raise DecisionIncomplete(f"reason: {found}")
    return stripped


def start(*, job_id: UUID, person: User, channel: str, authentication: Authentication = UNKNOWN) -> BulkJob:
    """Lets the workers begin. A job that its person has started already stays as it is.

    Args:
        authentication: when the person last proved who they are; it counts for every answer of the job.

    Raises:
        NotFound: there is no such job, or the person may not see it.
        Forbidden: somebody else prepared it: whose answers these are is who saw the preview.
        BulkJobClosed: it was aborted.
    """
    with _denials(person, channel, "start", f"bulk job {job_id}"):
        return _start(job_id, person, channel, authentication)


@one_transaction
def _start(job_id: UUID, person: User, channel: str, authentication: Authentication) -> BulkJob:
    person, job = _lock(job_id, person)
    if job.person_id != person.pk:
        raise Forbidden(f"Only {job.person_name}, who prepared this job, can start it. Prepare one of your own.")
    require(person, _RIGHTS[job.noun], action=f"answer {PLURAL[job.noun]}")
    if job.status == BulkJobStatus.ABORTED:
        raise BulkJobClosed(_how_it_ended(job))
    if job.status == BulkJobStatus.DRAFT:
        job.start()
        job.started_at, job.authenticated_at = clock.now(), authentication.at
        job.save(update_fields=["status", "started_at", "authenticated_at"])
        trail.note(job, Actor(person.get_username(), channel), "start", before="draft", after=job.status)
        transaction.on_commit(lambda: started.send_robust(sender=None), robust=True)
    return job


def abort(*, job_id: UUID, person: User, channel: str) -> BulkJob:
    """Ends a job before its next item; once this returns, nothing more is answered. What was answered stays.

    Raises:
        NotFound: there is no such job, or the person may not see it.
        Forbidden: neither prepared by this person nor an administrator.
        BulkJobClosed: it is done.
    """
    with _denials(person, channel, "abort", f"bulk job {job_id}"):
        return _abort(job_id, person, channel)


@one_transaction
def _abort(job_id: UUID, person: User, channel: str) -> BulkJob:
    person, job = _lock(job_id, person)
    if job.person_id != person.pk and not person.has_perm(ADMINISTER_WORKFLOW):
        raise Forbidden(f"Only {job.person_name}, who prepared this job, or an administrator can abort it.")
    if job.status == BulkJobStatus.DONE:
        raise BulkJobClosed(_how_it_ended(job))
    if job.status != BulkJobStatus.ABORTED:
        before = job.status
        job.abort()
        job.ended_at, job.aborted_by = clock.now(), person.get_username()
        job.save(update_fields=["status", "ended_at", "aborted_by"])
        actor = Actor(job.aborted_by, channel)
        trail.note(job, actor, "abort", before=before, after=job.status, details=trail.totals(job).as_json())
    return job


def _lock(job_id: UUID, person: User) -> tuple[User, BulkJob]:
    """The account is read again: a right taken away counts at once (S25)."""
    person = User.objects.get(pk=person.pk)
    job_visible_to(person, job_id)
    return person, BulkJob.objects.select_for_update().get(pk=job_id)


def _how_it_ended(job: BulkJob) -> str:
    by = f" by {job.aborted_by}" if job.aborted_by else ""
    return f"This bulk job is {job.status}{by} since {job.ended_at:%Y-%m-%d %H:%M:%S} UTC. Prepare a new one."


@contextmanager
def _denials(person: User, channel: str, verb: str, subject: str) -> Iterator[None]:
    """Records who was refused, after the refusing transaction has been rolled back."""
    try:
        yield
    except (Forbidden, NotFound) as refusal:
        denials.record(actor=Actor(person.get_username(), channel), verb=verb, subject=subject, reason=str(refusal))
        raise
