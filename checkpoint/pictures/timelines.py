"""When what happened to the steps of a workflow: attempts, reading back, and waiting for people, by database times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Prefetch, Q

from checkpoint import clock
from checkpoint.models import Approval, Attempt, Case, Step, Workflow

STEPS_SHOWN = 100
_SHORTEST = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Span:
    """Something that took time.

    Attributes:
        kind: attempt, reading, approval, question or pause.
        words: what it was, and how it ended.
        ends: now, where it has not ended.
    """

    kind: str
    words: str
    begins: datetime
    ends: datetime
    is_open: bool

    @property
    def seconds(self) -> float:
        """How long it took, so far."""
        return (self.ends - self.begins).total_seconds()


@dataclass(frozen=True)
class Line:
    """One step with its spans, by their beginning."""

    step: Step
    spans: Sequence[Span]


@dataclass(frozen=True)
class Timeline:
    """Some steps in the plan's order, and the time from the submission until the end, or until now."""

    lines: Sequence[Line]
    begins: datetime
    ends: datetime
    following: UUID | None

    @property
    def seconds(self) -> float:
        """The whole time; never nothing."""
        return max(self.ends - self.begins, _SHORTEST).total_seconds()


def of(workflow: Workflow, *, after: UUID | None = None) -> Timeline:
    """The timeline of the STEPS_SHOWN steps behind step `after`; payloads stay behind."""
    now = clock.now()
    steps = workflow.steps.only(
        "id", "workflow", "position", "name", "status", "committed_at", "verified_at", "next_at"
    )
    last = workflow.steps.filter(pk=after).only("position", "name").first() if after else None
    if last is not None:
        behind = Q(position__gt=last.position) | Q(position=last.position, name__gt=last.name)
        steps = steps.filter(behind | Q(position=last.position, name=last.name, id__gt=last.id))
    rows = list(steps.prefetch_related(*_RECORDS).order_by("position", "name", "id")[: STEPS_SHOWN + 1])
    more = len(rows) > STEPS_SHOWN
    rows = rows[:STEPS_SHOWN]
    lines = [Line(step, sorted(_spans(step, now), key=lambda span: span.begins)) for step in rows]
    return Timeline(lines, workflow.created_at, workflow.ended_at or now, rows[-1].pk if more else None)


_RECORDS = (
    Prefetch("attempts", Attempt.objects.only("step", "number", "started_at", "ended_at", "ending").order_by("number")),
    Prefetch("cases", Case.objects.only("step", "reason", "status", "opened_at", "closed_at")),
    Prefetch("approvals", Approval.objects.only("step", "status", "requested_at", "closed_at", "usable_from")),
)


def _spans(step: Step, now: datetime) -> Iterator[Span]:
    for attempt in step.attempts.all():
        ending = attempt.get_ending_display().lower() or "not ended"
        yield _span("attempt", f"attempt {attempt.number}: {ending}", attempt.started_at, attempt.ended_at, now)
    for case in step.cases.all():
        words = f"question, {case.rule.title.rstrip('?').lower()}: {case.status}"
        yield _span("question", words, case.opened_at, case.closed_at, now)
    for approval in step.approvals.all():
        ended = approval.closed_at or approval.usable_from
        yield _span("approval", f"approval: {approval.status}", approval.requested_at, ended, now)
    if step.committed_at:
        words = "read back" if step.verified_at else "reading back"
        yield _span("reading", words, step.committed_at, step.verified_at, now)
    if step.next_at and step.next_at > now:
        yield Span("pause", "waits until its time", now, step.next_at, is_open=True)


def _span(kind: str, words: str, begins: datetime, ends: datetime | None, now: datetime) -> Span:
    return Span(kind, words, begins, max(begins, ends or now), is_open=ends is None)
