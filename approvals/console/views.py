"""The review queue, one case, and the decision on it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods, require_safe

from approvals import decisions, queries, question_list, review_queue
from approvals.console import bulk_form, passwords, task_form
from approvals.console.case_page import CHANNEL, act, show
from approvals.review_queue import Shown
from checkpoint.errors import DecisionIncomplete
from checkpoint.pages import cursor, is_htmx, number, page
from checkpoint.permissions import teams_visible_to
from checkpoint.states import CASE_RULES, Decision

_LISTS = {
    Shown.WAITING: "Waiting",
    Shown.MINE: "Mine",
    Shown.UNASSIGNED: "Unassigned",
    Shown.SECOND_PERSON: "Second person needed",
    Shown.SNOOZED: "Snoozed",
    Shown.DONE: "Done",
}


@require_safe
def review(request: HttpRequest) -> HttpResponse:
    """One list of the queue: what cannot be undone first, then the oldest."""
    shown, narrowed = _shown(request.GET.get("list", "")), bulk_form.narrowed(request.GET)
    counts = question_list.counts(request.user)
    found = question_list.questions(request.user, shown=shown, narrowed=narrowed, after=cursor(request, "after"))
    context = {
        "found": found,
        "following": _query(request, after=found.following),
        "shown": shown,
        "lists": [(name, title, counts.get(name, "")) for name, title in _LISTS.items()],
        "narrowed": narrowed,
        "is_narrowed": narrowed != review_queue.EVERYTHING,
        "questions": [(reason.value, rule.title) for reason, rule in CASE_RULES.items()],
        "teams": teams_visible_to(request.user),
        # Above the list, which polls renew without it, stands how many the list has on all of its pages.
        "bulk": bulk_form.offered(request.user) if is_htmx(request) else bulk_form.bar(request.user, shown, narrowed),
    }
    return page(request, "review.html", "rows", context)


def _query(request: HttpRequest, **changed: Any) -> str:
    """That of the page's address, with something changed."""
    return urlencode({**request.GET.dict(), **changed})


def _shown(text: str) -> Shown:
    try:
        return Shown(text)
    except ValueError:
        return Shown.WAITING


@require_safe
def case(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """One case with all that a decision needs."""
    return show(request, case_id)


@require_http_methods(["POST", "GET", "HEAD"])
def decision(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """A person's answer."""
    return act(request, case_id, request.POST.get("kind", ""), lambda: decisions.decide(**_answer(request, case_id)))


def _answer(request: HttpRequest, case_id: UUID) -> dict[str, Any]:
    sent = request.POST
    return {
        "case_id": case_id,
        "kind": _kind(sent.get("kind", "")),
        "person": request.user,
        "channel": CHANNEL,
        "reason": sent.get("reason", ""),
        "operation_id": sent.get("operation_id", ""),
        "step_version": number(sent.get("step_version")) or 0,
        "arguments_hash": sent.get("arguments_hash", ""),
        "authentication": passwords.given(request),
        "data": _data(request, case_id) if sent.get("kind") == Decision.ANSWER else None,
    }


def _data(request: HttpRequest, case_id: UUID) -> dict[str, Any]:
    """What the form of a task holds, as its fields say; of a case that the person may not see, nothing is read."""
    return task_form.answer_from(queries.visible_case(request.user, case_id), request.POST.dict())


def _kind(text: str) -> Decision:
    try:
        return Decision(text)
    except ValueError:
        raise DecisionIncomplete(f"kind: choose one of {', '.join(Decision)}.") from None
