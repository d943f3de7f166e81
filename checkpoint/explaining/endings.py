"""What abandoning a workflow would do, read before it is done: what ends, what is still in the air, what stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from checkpoint.models import Approval, Case, Step, Workflow
from checkpoint.states import OPEN_REQUESTS, UNSETTLED, CaseReason, CaseStatus, StepStatus
from checkpoint.transitions import WINDS_DOWN

SHOWN = 50

# What still happens with a step that is in the air when its workflow is wound down.
STILL_HAPPENS = {
    StepStatus.STARTED: "A call is on its way. It is awaited or looked up, and then counts as it went.",
    StepStatus.COMMITTED: "It took effect; its outcome is still read back.",
    StepStatus.UNCERTAIN: "Whether it took effect is not known. Somebody still has to answer its question.",
}


@dataclass(frozen=True)
class Steps:
    """Some steps of one sort: how many there are, and the first SHOWN of them."""

    count: int
    rows: Sequence[Step]


@dataclass(frozen=True)
class Ending:
    """What becomes of a workflow that is abandoned now.

    Attributes:
        ending: steps that have not run, or whose every attempt failed: they end.
        in_the_air: steps that are settled first.
        stay: steps that took effect and were verified: they stay in place and on record.
        questions: open cases that are closed with their steps.
        requests: approvals, asked for or unused, that are withdrawn.
    """

    ending: Steps
    in_the_air: Steps
    stay: Steps
    questions: int
    requests: int

    @property
    def at_once(self) -> bool:
        """Whether nothing is in the air, so that the workflow ends in the same moment."""
        return not self.in_the_air.count


def of(workflow: Workflow) -> Ending:
    """The ending that `workflows.abandon` would bring about."""
    going = workflow.steps.filter(status__in=WINDS_DOWN)
    cases = Case.objects.filter(step__in=going, status=CaseStatus.OPEN).exclude(reason=CaseReason.DUPLICATE_EFFECT)
    return Ending(
        ending=_some(going),
        in_the_air=_some(workflow.steps.filter(status__in=UNSETTLED)),
        stay=_some(workflow.steps.filter(status=StepStatus.VERIFIED)),
        questions=cases.count(),
        requests=Approval.objects.filter(step__in=going, status__in=OPEN_REQUESTS, part_of=None).count(),
    )


def _some(steps: QuerySet[Step]) -> Steps:
    rows: Iterable[Step] = (
        steps.select_related("tool_version")
        .defer("arguments", "template", "tool_version__schema")
        .order_by("position", "name")[:SHOWN]
    )
    return Steps(steps.count(), list(rows))
