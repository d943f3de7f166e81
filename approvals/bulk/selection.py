"""What a person selects for a bulk job, and its freezing: which things, in which order, at which version (S33, S34)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Coalesce, NullIf

from approvals.bulk.states import BulkNoun
from approvals.queries import cases_visible_to
from checkpoint.errors import DecisionIncomplete, NotFound
from checkpoint.models import Approval
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.states import ApprovalStatus, CaseStatus


@dataclass(frozen=True)
class Narrowed:
    """What the queue is narrowed to; empty members narrow nothing.

    Attributes:
        team: a team's slug.
        kind: a workflow's kind.
        tool: a tool's name.
        reason: why a case was opened; no request for approval has one.
    """

    team: str = ""
    kind: str = ""
    tool: str = ""
    reason: str = ""

    def as_query(self, noun: BulkNoun) -> Q:
        """As a condition on cases, or on requests for approval."""
        exact = {"workflow__team__slug": self.team, "workflow__kind": self.kind, "step__tool_version__name": self.tool}
        if noun is BulkNoun.CASE:
            exact["reason"] = self.reason
        elif self.reason:
            return Q(pk=None)
        return Q(**{name: value for name, value in exact.items() if value})


@dataclass(frozen=True)
class Selection:
    """Things chosen one by one, or with `matching` all that are in the queue so narrowed."""

    cases: tuple[UUID, ...] = ()
    approvals: tuple[UUID, ...] = ()
    matching: Narrowed | None = None

    @property
    def stored(self) -> dict[str, Any] | None:
        """The filter as a job keeps it; None where things were chosen one by one."""
        return {name: value for name, value in asdict(self.matching).items() if value} if self.matching else None


class Frozen(NamedTuple):
    """One thing with what the answer to it is bound to."""

    id: UUID
    step_version: int
    arguments_hash: str


@dataclass(frozen=True)
class Frozens:
    """What a job is made of.

    Attributes:
        matched: how many were selected; more than there are rows where the cap cut them off.
    """

    rows: list[Frozen]
    matched: int


def cap() -> int:
    """The most that one job takes."""
    limit: int = settings.CHECKPOINT_BULK_CAP
    return limit


def freeze(person: Person, noun: BulkNoun, selection: Selection) -> Frozens:
    """What is selected, as it is now, in the order of the queue, and no more than the cap.

    Raises:
        DecisionIncomplete: nothing is selected, or something that is not answered in this way.
        NotFound: something that does not exist or that the person may not see.
    """
    found = _visible(person, noun)
    if selection.matching is not None:
        found = found.filter(selection.matching.as_query(noun), status=_WAITING[noun])
        matched = found.count()
    else:
        chosen = _chosen(noun, selection)
        found = found.filter(pk__in=chosen)
        matched = found.count()
        if matched < len(chosen):
            raise NotFound(f"Among the selected are {PLURAL[noun]} that do not exist or that you may not see.")
    if not matched:
        raise DecisionIncomplete(f"selection: there are no {PLURAL[noun]} in it. Select at least one.")
    return Frozens([Frozen(*row) for row in found[: cap()]], matched)


def _chosen(noun: BulkNoun, selection: Selection) -> set[UUID]:
    chosen, others = selection.cases, selection.approvals
    if noun is BulkNoun.APPROVAL:
        chosen, others = others, chosen
    if others:
        raise DecisionIncomplete(
            f"kind: it answers {PLURAL[noun]}, and {len(set(others))} of the selected are not."
            " Choose another answer, or select only what it fits."
        )
    return set(chosen)


def _visible(person: Person, noun: BulkNoun) -> QuerySet[Any, Any]:
    """All that the person sees, as rows of `Frozen`. The shares of a plan are answered with the plan."""
    if noun is BulkNoun.CASE:
        cases: QuerySet[Any, Any] = cases_visible_to(person).order_by("opened_at", "pk")
        return cases.values_list("pk", "step__version", "step__arguments_hash")
    shown_hash = Coalesce(NullIf("plan_hash", Value("")), "arguments_hash")
    approvals: QuerySet[Any, Any] = Approval.objects.filter(workflow__in=workflows_visible_to(person), part_of=None)
    return approvals.order_by("requested_at", "pk").values_list("pk", "step__version", shown_hash)


_WAITING = {BulkNoun.CASE: CaseStatus.OPEN, BulkNoun.APPROVAL: ApprovalStatus.PENDING}
PLURAL = {BulkNoun.CASE: "cases", BulkNoun.APPROVAL: "requests for approval"}
