"""How many steps of a workflow are in which state, over all and for each batch; the same for every reader.

A step that the policy waived counts as `waived` and not as `abandoned`: the first is a part of a plan that went on.
However large a batch is, what is told of it stays small.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Count, QuerySet

from checkpoint.models import Step
from checkpoint.states import StepStatus

WAIVED = "waived"
BATCHES_TOLD = 50

_ORDER = (
    StepStatus.VERIFIED, StepStatus.FAILED, StepStatus.UNCERTAIN, StepStatus.STARTED, StepStatus.COMMITTED,
    StepStatus.PREPARED, StepStatus.PLANNED, WAIVED, StepStatus.ABANDONED,
)  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """Numbers of steps by state, without zeros. `position` is None for the whole plan."""

    position: int | None
    by_state: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Of all states."""
        return sum(self.by_state.values())

    @property
    def waived(self) -> int:
        """Steps without which the plan went on."""
        return self.by_state.get(WAIVED, 0)

    @property
    def in_order(self) -> list[tuple[str, int]]:
        """What went well, then what needs somebody, what is under way, and what is done with."""
        return [(state, self.by_state[state]) for state in _ORDER if state in self.by_state]

    def __str__(self) -> str:
        """ "997 verified, 2 failed, 1 uncertain" """
        return ", ".join(f"{number} {state}" for state, number in self.in_order)


@dataclass(frozen=True)
class PlanCounts:
    """The counts of one plan.

    Attributes:
        batches: of the positions that several steps share, in the plan's order; the first BATCHES_TOLD.
        left_off: batches that are not told.
    """

    plan: Counts
    batches: tuple[Counts, ...] = ()
    left_off: int = 0


_Numbered = tuple[int, str, int]  # position, state, number of steps


def of_workflow(workflow_id: UUID) -> PlanCounts:
    """The counts of a stored workflow, in one query."""
    return of_steps(_stored(Step.objects.filter(workflow=workflow_id)))


def of_positions(workflow_id: UUID, positions: Collection[int]) -> dict[int, Counts]:
    """The counts of those of these positions that several steps share, in one query."""
    found = _batches(_stored(Step.objects.filter(workflow=workflow_id, position__in=positions)))
    return {counts.position: counts for counts in found if counts.position is not None}


def of_steps(steps: Iterable[_Numbered]) -> PlanCounts:
    """The counts of steps given as position, state (waived ones are called so) and number."""
    listed = [each for each in steps if each[1] != StepStatus.SUPERSEDED]
    plan: Counter[str] = Counter()
    for _, state, number in listed:
        plan[state] += number
    batches = _batches(listed)
    return PlanCounts(Counts(None, dict(plan)), tuple(batches[:BATCHES_TOLD]), max(0, len(batches) - BATCHES_TOLD))


def _stored(steps: QuerySet[Step]) -> list[_Numbered]:
    counted = steps.exclude(status=StepStatus.SUPERSEDED).order_by().values_list("position", "status")
    found = counted.annotate(count=Count("id"), waived=Count("waiver"))
    split = ((each, (WAIVED, waived), (status, count - waived)) for each, status, count, waived in found)
    return [(position, state, number) for position, *states in split for state, number in states if number]


def _batches(steps: Iterable[_Numbered]) -> list[Counts]:
    positions: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for position, state, number in steps:
        positions[position][state] += number
    every = (Counts(position, dict(positions[position])) for position in sorted(positions))
    return [counts for counts in every if counts.total > 1]
