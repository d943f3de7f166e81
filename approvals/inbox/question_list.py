"""All that people are asked, in one list: open cases and requests for approval, and what became of them lately.

Each of the two is read behind the same place and no further than a page; the first page of both together is the page.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Left

from approvals.inbox import review_queue
from approvals.inbox.narrowing import Narrowed
from approvals.inbox.review_queue import EVERYTHING, PAYLOADS, Shown
from approvals.inbox.urgency import irreversible, place, plan_irreversible
from approvals.models import Decision
from approvals.queries import cases_visible_to
from approvals.request_queries import requests_visible_to
from checkpoint.models import Approval, Case
from checkpoint.permissions import Person
from checkpoint.queries import COUNT_LIMIT, PREVIEW, Page
from checkpoint.states import OPEN_REQUESTS, ApprovalStatus
from checkpoint.states import Decision as DecisionKind

# A request for approval belongs to nobody and is not put aside.
_OPEN_REQUESTS_IN = (Shown.WAITING, Shown.UNASSIGNED, Shown.SECOND_PERSON)
_GIVEN = Count("decisions", filter=Q(decisions__kind=DecisionKind.APPROVE), distinct=True)


@dataclass(frozen=True)
class Question:
    """One row of the list."""

    about: Case | Approval

    @property
    def noun(self) -> str:
        """What it is, as the addresses name it."""
        return "case" if isinstance(self.about, Case) else "approval"

    @property
    def urgency(self) -> tuple[Any, ...]:
        """The order of the open ones: what cannot be undone first, then the oldest."""
        about: Any = self.about
        return not about.irreversible, about.opened_at if self.noun == "case" else about.requested_at, about.id


def questions(
    person: Person, *, shown: Shown = Shown.WAITING, narrowed: Narrowed = EVERYTHING, after: UUID | None = None
) -> Page[Question]:
    """One page of a list, behind question `after`. Cases are as `review_queue.queue` gives them.

    Requests have `irreversible`, `goal_preview`, `given` (people who approved) and `others` (further steps of a plan).
    """
    cases = review_queue.queue(person, shown=shown, narrowed=narrowed, after=after)
    requests = _requests(person, shown, narrowed, after)
    size = review_queue.PAGE_SIZE
    both = [*map(Question, cases.rows), *map(Question, requests)]
    if shown is Shown.DONE:
        both.sort(key=lambda question: (question.about.closed_at, question.about.id), reverse=True)
    else:
        both.sort(key=lambda question: question.urgency)
    more = len(both) > size or cases.following is not None
    return Page(both[:size], both[size - 1].about.pk if more else None)


def named(person: Person, ids: Collection[UUID]) -> dict[UUID, Question]:
    """Of these questions those that the person sees, open or closed, each as `questions` gives it."""
    cases = review_queue.described(cases_visible_to(person).filter(pk__in=ids)).select_related("decision")
    requests = _described(requests_visible_to(person).filter(pk__in=ids).annotate(given=_GIVEN))
    found = [Question(each) for each in cases.annotate(irreversible=irreversible())]
    found += [Question(each) for each in requests.annotate(irreversible=plan_irreversible())]
    return {question.about.pk: question for question in found}


def next_question(person: Person) -> Question | None:
    """What waits longest, of what is gravest."""
    return next(iter(questions(person).rows), None)


def counts(person: Person) -> dict[Shown, str]:
    """How many are in each list of open questions, as people read it: nobody reads further than COUNT_LIMIT."""
    approved = Decision.objects.filter(approval=OuterRef("pk"), kind=DecisionKind.APPROVE)
    waiting = requests_visible_to(person).filter(status=ApprovalStatus.PENDING)
    requests = waiting.aggregate(all=Count("pk"), signed=Count("pk", filter=Q(Exists(approved))))
    found = review_queue.counts(person)
    for shown in _OPEN_REQUESTS_IN:
        found[shown] += requests["signed" if shown is Shown.SECOND_PERSON else "all"]
    return {shown: f"{COUNT_LIMIT - 1}+" if count >= COUNT_LIMIT else str(count) for shown, count in found.items()}


def requests_in(person: Person, shown: Shown = Shown.WAITING, narrowed: Narrowed = EVERYTHING) -> QuerySet[Approval]:
    """All requests of one list, in the order of the open ones."""
    return requests_by_urgency(_listed(person, shown).filter(narrowed.of_approvals))


def requests_by_urgency(requests: QuerySet[Approval]) -> QuerySet[Approval]:
    """What cannot be undone first, then the oldest; each with `irreversible`."""
    return requests.annotate(irreversible=plan_irreversible()).order_by("-irreversible", "requested_at", "id")


def _requests(person: Person, shown: Shown, narrowed: Narrowed, after: UUID | None) -> list[Approval]:
    found = requests_in(person, shown, narrowed)
    if (last := place(person, after)) is not None:
        found = found.filter(last.earlier if shown is Shown.DONE else last.later("requested_at"))
    if shown is Shown.DONE:
        found = found.order_by("-closed_at", "-id")
        if narrowed.search:
            newest = requests_visible_to(person).order_by("-id").values("pk")[: review_queue.LOOKED_THROUGH]
            found = found.filter(pk__in=newest)
    return list(_described(found)[: review_queue.PAGE_SIZE + 1])


def _described(requests: QuerySet[Approval]) -> QuerySet[Approval]:
    with_words = requests.annotate(goal_preview=Left("workflow__goal", PREVIEW), others=Count("parts", distinct=True))
    rows = with_words.select_related("step", "step__tool_version", "workflow", "workflow__team").defer(*PAYLOADS)
    return rows.prefetch_related("decisions")


def _listed(person: Person, shown: Shown) -> QuerySet[Approval]:
    found = requests_visible_to(person).annotate(given=_GIVEN)
    if shown is Shown.DONE:
        return found.exclude(status__in=OPEN_REQUESTS)
    if shown not in _OPEN_REQUESTS_IN:
        return found.none()
    waiting = found.filter(status=ApprovalStatus.PENDING)
    return waiting.filter(given__gt=0) if shown is Shown.SECOND_PERSON else waiting
