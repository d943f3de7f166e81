"""A plan at a glance: its positions, how many steps each has and where they stand. Counted, never listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.db.models import Count, Min, Q

from checkpoint.explaining.step_counts import WAIVED
from checkpoint.models import Workflow

POSITIONS_SHOWN = 60


@dataclass(frozen=True)
class Stage:
    """One position.

    Attributes:
        name: its first step, by name.
        states: how many steps are in each status; waived ones are told apart from those that were abandoned.
        undoing: how many of them undo an effect of another step.
    """

    position: int
    name: str
    states: Mapping[str, int]
    undoing: int

    @property
    def size(self) -> int:
        """How many steps it has."""
        return sum(self.states.values())


@dataclass(frozen=True)
class Picture:
    """The first POSITIONS_SHOWN positions, and whether there are more."""

    stages: Sequence[Stage]
    more: bool


def of(workflow: Workflow) -> Picture:
    """The picture, in one statement over the workflow's steps."""
    counted = (
        workflow.steps.order_by("position", "status")
        .values("position", "status")
        .annotate(
            number=Count("id"),
            waived=Count("waiver"),
            first=Min("name"),
            undoing=Count("id", filter=Q(compensates__isnull=False)),
        )
    )
    stages = []
    for position, group in groupby(counted, key=lambda row: row["position"]):
        rows = list(group)
        states = {row["status"]: row["number"] - row["waived"] for row in rows}
        states |= {WAIVED: sum(row["waived"] for row in rows)}
        undoing = sum(row["undoing"] for row in rows)
        stages.append(Stage(position, min(row["first"] for row in rows), _without_zeros(states), undoing))
    return Picture(stages[:POSITIONS_SHOWN], len(stages) > POSITIONS_SHOWN)


def _without_zeros(states: Mapping[str, int]) -> dict[str, int]:
    return {state: number for state, number in states.items() if number}
