"""The review queue: the open questions by whose turn it is, and what was answered lately. Bounded, without payloads."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from uuid import UUID

from django.db.models import (
    Count,
    Exists,
    F,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Left

from approvals.inbox.narrowing import Narrowed
from approvals.inbox.urgency import Place, irreversible, place
from approvals.models import Assignment, Escalation, Signature, Snooze
from approvals.queries import cases_visible_to
from checkpoint import queries
from checkpoint.clock import Now
from checkpoint.models import Case
from checkpoint.permissions import Person
from checkpoint.queries import PREVIEW, Page
from checkpoint.states import CaseStatus


class Shown(StrEnum):
    """A list of the queue. Every open case is in the first or under SNOOZED (S36)."""

    WAITING = "waiting"
    MINE = "mine"
    UNASSIGNED = "unassigned"
    SECOND_PERSON = "second_person"
    SNOOZED = "snoozed"
    DONE = "done"


PAGE_SIZE = queries.PAGE_SIZE  # questions on one page
LOOKED_THROUGH = 5_000  # of what was closed, the newest are searched for words
EVERYTHING = Narrowed()
_HELD = Assignment.objects.filter(case=OuterRef("pk"), ended_at=None)
_ASIDE = Snooze.objects.filter(case=OuterRef("pk"), woken_at=None, ends_at__gt=Now())
_SIGNED = Signature.objects.filter(case=OuterRef("pk"), step_version=OuterRef("step__version"))


_LISTS: dict[Shown, Callable[[Person], Q]] = {
    Shown.WAITING: lambda person: ~Q(Exists(_ASIDE)),
    Shown.MINE: lambda person: Q(Exists(_HELD.filter(person=person.pk))),
    Shown.UNASSIGNED: lambda person: ~Q(Exists(_ASIDE)) & ~Q(Exists(_HELD)),
    Shown.SECOND_PERSON: lambda person: ~Q(Exists(_ASIDE)) & Q(Exists(_SIGNED)),
    Shown.SNOOZED: lambda person: Q(Exists(_ASIDE)),
}


def queue(
    person: Person, *, shown: Shown = Shown.WAITING, narrowed: Narrowed = EVERYTHING, after: UUID | None = None
) -> Page[Case]:
    """The cases of one list behind question `after`: what cannot be undone, then the oldest; of DONE the newest first.

    Each has `irreversible`, `goal_preview`, `held_by`, `aside_until`, `escalated` and `signed`; findings and payloads
    stay behind.
    """
    last = place(person, after)
    if shown is Shown.DONE:
        return _page(_done(person, narrowed, last).order_by("-closed_at", "-id"))
    cases = open_cases(person, shown, narrowed)
    return _page(cases.filter(last.later("opened_at")) if last else cases)


def open_cases(person: Person, shown: Shown = Shown.WAITING, narrowed: Narrowed = EVERYTHING) -> QuerySet[Case]:
    """All of one list of open cases, in the order of the queue."""
    return by_urgency(_open(person, shown).filter(narrowed.of_cases))


def by_urgency(cases: QuerySet[Case]) -> QuerySet[Case]:
    """What cannot be undone first, then the oldest; each with `irreversible`."""
    return cases.annotate(irreversible=irreversible()).order_by("-irreversible", "opened_at", "id")


def counts(person: Person) -> dict[Shown, int]:
    """How many are in each list of open cases, in one statement over the open ones."""
    lists = {shown.value: Count("pk", filter=belongs(person)) for shown, belongs in _LISTS.items()}
    found = cases_visible_to(person).filter(status=CaseStatus.OPEN).aggregate(**lists)
    return {shown: found[shown.value] for shown in _LISTS}


def _open(person: Person, shown: Shown) -> QuerySet[Case]:
    return cases_visible_to(person).filter(_LISTS[shown](person), status=CaseStatus.OPEN)


def _done(person: Person, narrowed: Narrowed, last: Place | None) -> QuerySet[Case]:
    cases = cases_visible_to(person).exclude(status=CaseStatus.OPEN).select_related("decision")
    if narrowed.search:
        cases = cases.filter(pk__in=cases.order_by("-closed_at", "-id").values("pk")[:LOOKED_THROUGH])
    cases = cases.filter(narrowed.of_cases)
    return (cases.filter(last.earlier) if last else cases).annotate(irreversible=irreversible())


def _page(cases: QuerySet[Case]) -> Page[Case]:
    rows = list(described(cases)[: PAGE_SIZE + 1])
    more = len(rows) > PAGE_SIZE
    return Page(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].id if more else None)


def described(cases: QuerySet[Case]) -> QuerySet[Case]:
    """The cases with all that a row of the queue says of them but `irreversible`, as `queue` gives it."""
    valid = Signature.objects.filter(step_version=F("case__step__version"))
    return (
        cases.select_related("step", "step__tool_version", "workflow", "workflow__team")
        .defer("findings", *PAYLOADS)
        .annotate(
            goal_preview=Left("workflow__goal", PREVIEW),
            held_by=Subquery(_HELD.values("person_name")[:1]),
            aside_until=Subquery(_ASIDE.values("ends_at")[:1]),
            escalated=Exists(Escalation.objects.filter(case=OuterRef("pk"))),
        )
        .prefetch_related(Prefetch("signatures", valid, to_attr="signed"))
    )


PAYLOADS = (
    "step__arguments",
    "step__template",
    "step__tool_version__schema",
    "workflow__goal",
    "workflow__constraints",
    "workflow__input",
)
