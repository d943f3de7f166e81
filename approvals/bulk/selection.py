"""What a person selects for a bulk job, and its freezing: which things, in which order, at which version (S33, S34)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet, Value
from django.db.models.functions import Coalesce, NullIf

from approvals.bulk.states import BulkNoun
from approvals.inbox.narrowing import Narrowed
from approvals.inbox.question_list import requests_by_urgency, requests_in
from approvals.inbox.review_queue import EVERYTHING, Shown, by_urgency, open_cases
from approvals.queries import cases_visible_to
from approvals.request_queries import requests_visible_to
from checkpoint.errors import DecisionIncomplete, NotFound
from checkpoint.permissions import Person


@dataclass(frozen=True)
class Matching:
    """All that one list of the queue shows, on however many pages."""

    narrowed: Narrowed = EVERYTHING
    shown: Shown = Shown.WAITING

    def as_json(self) -> dict[str, str]:
        """As a job keeps it."""
        members = {"shown": self.shown.value, **asdict(self.narrowed)}
        return {name: value for name, value in members.items() if value}


@dataclass(frozen=True)
class Selection:
    """Things chosen one by one, or with `matching` all of a list."""

    cases: tuple[UUID, ...] = ()
    approvals: tuple[UUID, ...] = ()
    matching: Matching | None = None


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
    if selection.matching and selection.matching.shown is Shown.DONE:
        raise DecisionIncomplete("selection: this list shows what is closed. Take one that shows what is open.")
    chosen = _chosen(noun, selection)
    found = _found(person, noun, selection.matching, chosen)
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


def _found(person: Person, noun: BulkNoun, matching: Matching | None, chosen: set[UUID]) -> QuerySet[Any, Any]:
    """As rows of `Frozen`."""
    if noun is BulkNoun.CASE:
        cases: QuerySet[Any, Any] = (
            open_cases(person, matching.shown, matching.narrowed)
            if matching
            else by_urgency(cases_visible_to(person).filter(pk__in=chosen))
        )
        return cases.values_list("pk", "step__version", "step__arguments_hash")
    approvals: QuerySet[Any, Any] = (
        requests_in(person, matching.shown, matching.narrowed)
        if matching
        else requests_by_urgency(requests_visible_to(person).filter(pk__in=chosen))
    )
    shown_hash = Coalesce(NullIf("plan_hash", Value("")), "arguments_hash")
    return approvals.values_list("pk", "step__version", shown_hash)


PLURAL = {BulkNoun.CASE: "cases", BulkNoun.APPROVAL: "requests for approval"}
_SINGULAR = {BulkNoun.CASE: "case", BulkNoun.APPROVAL: "request for approval"}


def counted(noun: BulkNoun, count: int) -> str:
    """So many of them, in words."""
    return f"{count} {_SINGULAR[noun] if count == 1 else PLURAL[noun]}"
