"""Speaks the verbs of bulk jobs: prepares, starts, and works as a worker would, in this process."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from approvals.bulk import jobs, work
from approvals.bulk.selection import Selection
from approvals.models import BulkItem, BulkJob
from checkpoint import clock
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Approval, AuditEntry, Case, Step
from checkpoint.states import Decision as DecisionKind
from tests import factories

REASON = "The bank confirmed that nothing was booked."


def decider(name: str = "ada", **more: Any) -> User:
    """Somebody of the team Billing who may decide cases and approvals."""
    return factories.person(name, **{"groups": ["Approver"], "teams": [factories.team()], **more})


def cases(count: int, **fields: Any) -> list[Case]:
    """Open cases of as many workflows, oldest first."""
    return [factories.case(**fields) for _ in range(count)]


def approval(step: Step | None = None, *, submitted_by: User | None = None, **rule: Any) -> Approval:
    """A pending request for approval, by default about a new step whose effect can be undone."""
    about = step or factories.step(
        factories.workflow(submitted_by=submitted_by), tool_version=factories.tool("ticket.open", factories.TICKET)
    )
    asked, now = ApprovalRule(**rule), clock.now()
    return Approval.objects.create(
        workflow=about.workflow, step=about, rule=asked.to_json(), arguments_hash=about.arguments_hash,
        policy_version=about.workflow.policy_version, tool_version=about.tool_version, requested_at=now,
        expires_at=now + timedelta(seconds=asked.expires_seconds),
    )  # fmt: skip


def chosen(things: Iterable[Case | Approval]) -> Selection:
    """These, one by one."""
    every = list(things)
    return Selection(
        cases=tuple(one.pk for one in every if isinstance(one, Case)),
        approvals=tuple(one.pk for one in every if isinstance(one, Approval)),
    )


def prepared(
    person: User,
    kind: DecisionKind,
    things: Iterable[Case | Approval] = (),
    selection: Selection | None = None,
    **more: Any,
) -> BulkJob:
    """A draft."""
    asked = {"channel": "console", "reason": REASON, **more}
    return jobs.create(person=person, kind=kind, selection=selection or chosen(things), **asked)


def started(person: User, kind: DecisionKind, things: Iterable[Case | Approval]) -> BulkJob:
    """A running job on which nobody works yet."""
    return jobs.start(job_id=prepared(person, kind, things).pk, person=person, channel="console")


def answer_next() -> None:
    """One item, as a worker that is given no more time."""
    work.work(seconds=0)


def run(job: BulkJob) -> BulkJob:
    """Works until nothing is left; the job as it is then."""
    while work.work(seconds=60):
        pass
    return BulkJob.objects.get(pk=job.pk)


def results(job: BulkJob) -> list[str]:
    """Each item's result, in their order."""
    return [item.result for item in BulkItem.objects.filter(job=job).order_by("number")]


def messages(job: BulkJob) -> list[str]:
    """Each item's message, in their order."""
    return [item.message for item in BulkItem.objects.filter(job=job).order_by("number")]


def trail(job: BulkJob) -> list[AuditEntry]:
    """The job's own audit stream."""
    return list(AuditEntry.objects.filter(stream_id=job.pk).order_by("seq"))
