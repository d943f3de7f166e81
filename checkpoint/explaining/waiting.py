"""Follows a workflow from outside, by its record, until it comes to a point where somebody else has to act."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from dataclasses import dataclass
from uuid import UUID

from checkpoint.models import Approval, Case, Step, Waiver, Workflow
from checkpoint.short_ids import short
from checkpoint.states import STEP_TERMINAL, ApprovalStatus, CaseStatus, Standing, StepStatus, WorkflowStatus

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Change:
    """Something moved. `status` is the workflow's where it is one that was waited for, else None."""

    line: str
    status: WorkflowStatus | None = None


def follow(workflow_id: UUID, *, seconds: float, until: Container[WorkflowStatus]) -> Iterator[Change]:
    """Yields each change as it is seen, the one that was waited for last; ends without it when the time is over."""
    deadline = time.monotonic() + seconds
    steps: dict[str, _Step] = {}
    asked: set[UUID] = set()
    version = 0
    while True:
        # The workflow first: steps read after it are at least as far as it says.
        status, newest = Workflow.objects.values_list("status", "version").get(pk=workflow_id)
        if newest != version:
            yield from _changes(workflow_id, steps)
            yield from _requests(workflow_id, asked)
            version = newest
        if status in until:
            yield Change(f"workflow: {status.replace('_', ' ')}{_in_part(workflow_id)}", WorkflowStatus(status))
            return
        if time.monotonic() >= deadline:
            return
        time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def follow_step(step_id: UUID, *, seconds: float) -> Iterator[str]:
    """Yields each state of one step as it is seen, until nothing more happens with it by itself or the time is over."""
    deadline, last = time.monotonic() + seconds, None
    while True:
        name, status, standing = Step.objects.values_list("name", "status", "standing").get(pk=step_id)
        if (status, standing) != last:
            yield f"step {name}: {_words(status, standing)}"
            last = status, standing
        if at_rest(step_id) or time.monotonic() >= deadline:
            return
        time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def at_rest(step_id: UUID) -> bool:
    """Whether the step has ended, or waits for people."""
    if Step.objects.filter(pk=step_id, status__in=STEP_TERMINAL).exists():
        return True
    asked = Case.objects.filter(step=step_id, status=CaseStatus.OPEN).exists()
    return asked or Approval.objects.filter(step=step_id, status=ApprovalStatus.PENDING).exists()


def _in_part(workflow_id: UUID) -> str:
    waived = Waiver.objects.filter(step__workflow=workflow_id).count()
    return f" in part, {waived} {'step' if waived == 1 else 'steps'} waived" if waived else ""


_Step = tuple[str, str]  # status and standing
_NEW: set[_Step] = {(StepStatus.PLANNED, ""), (StepStatus.PREPARED, "")}


def _changes(workflow_id: UUID, steps: dict[str, _Step]) -> Iterator[Change]:
    """What differs from `steps`, which is brought up to date."""
    stored = Step.objects.filter(workflow=workflow_id).order_by("position", "name")
    for name, status, standing in stored.values_list("name", "status", "standing"):
        if steps.get(name) != (status, standing) and (name in steps or (status, standing) not in _NEW):
            yield Change(f"step {name}: {_words(status, standing)}")
        steps[name] = status, standing


def _requests(workflow_id: UUID, asked: set[UUID]) -> Iterator[Change]:
    """The requests for approval that are open and not in `asked`, which is brought up to date."""
    found = Approval.objects.filter(workflow=workflow_id, status=ApprovalStatus.PENDING, part_of=None)
    for approval in found.exclude(pk__in=asked).select_related("step").only("step__name"):
        asked.add(approval.pk)
        yield Change(
            f"step {approval.step.name}: may it run? `manage.py answer {short(approval.pk)} approve|reject --reason …`"
        )


def _words(status: str, standing: str) -> str:
    return f"{status} ({standing.replace('_', ' ')})" if standing not in ("", Standing.VERIFIED, status) else status
