"""The review queue as an inbox: its lists, what it is narrowed to, the reader's own views, and what comes meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from approvals.console import bulk_form
from approvals.inbox import question_list, reading, review_queue, saved_views
from approvals.inbox.reading import Reading
from approvals.inbox.review_queue import Shown
from approvals.models import SavedView
from checkpoint.errors import ActionIncomplete, Conflict
from checkpoint.pages import cursor, is_htmx, page
from checkpoint.permissions import teams_visible_to
from checkpoint.states import CASE_RULES

_LISTS = {
    Shown.WAITING: "Waiting",
    Shown.MINE: "Mine",
    Shown.UNASSIGNED: "Unassigned",
    Shown.SECOND_PERSON: "Second approver needed",
    Shown.SNOOZED: "Snoozed",
    Shown.DONE: "Done",
}
_IN_VIEW, _WAS_FULL = "in_view", "was_full"
_OF_A_VIEW = ("list", *bulk_form.NAMES)


@require_safe
def review(request: HttpRequest) -> HttpResponse:
    """One list of the queue: what cannot be undone first, then the oldest.

    An address that says which rows the reader has in view is answered with the same rows, as they are now.
    """
    return _page(request, _sent(request.GET))


@require_http_methods(["POST", "GET", "HEAD"])
def keep_view(request: HttpRequest) -> HttpResponse:
    """Keeps what the list is narrowed to under a name, and leads back to it."""
    if request.method != "POST":
        return redirect("review")
    assert isinstance(request.user, User)  # the middleware lets nobody in who has no account
    asked = {name: value for name, value in _sent(request.POST).items() if name in _OF_A_VIEW}
    name = request.POST.get("name", "")
    try:
        kept = saved_views.keep(person=request.user, name=name, query=_query(asked))
    except ActionIncomplete as refusal:
        return _page(request, asked, status=422, typed=name, refusal=str(refusal).partition(": ")[2])
    except Conflict as refusal:
        return _page(request, asked, status=409, typed=name, refusal=str(refusal))
    return redirect(_address(kept.query))


@require_http_methods(["POST", "GET", "HEAD"])
def remove_view(request: HttpRequest, view_id: UUID) -> HttpResponse:
    """Forgets one of the reader's own views."""
    if request.method == "POST":
        assert isinstance(request.user, User)  # as above
        saved_views.remove(person=request.user, view_id=view_id)
    return redirect("review")


def _page(request: HttpRequest, asked: Mapping[str, str], *, status: int = 200, **typed: str) -> HttpResponse:
    shown, narrowed = _shown(asked.get("list", "")), bulk_form.narrowed(asked)
    counts = question_list.counts(request.user)
    view = _query({name: value for name, value in asked.items() if name in _OF_A_VIEW})
    seen = _reading(request, shown, narrowed)
    context = {
        "found": seen,
        "address": _address(view, after=asked.get("after", "")),
        "following": _query({**_members(view), "after": str(seen.following)}),
        "shown": shown,
        "shown_title": _LISTS[shown],
        "lists": [(name, title, counts.get(name, "")) for name, title in _LISTS.items()],
        "narrowed": narrowed,
        "is_narrowed": narrowed != review_queue.EVERYTHING,
        "questions": [(reason.value, rule.title) for reason, rule in CASE_RULES.items()],
        "teams": teams_visible_to(request.user),
        "views": SavedView.objects.filter(person=request.user.pk),
        "view": view,
        "looked_through": f"{review_queue.LOOKED_THROUGH:,}",
        # Above the list, which is renewed without it, stands how many the list has on all of its pages.
        "bulk": bulk_form.offered(request.user) if is_htmx(request) else bulk_form.bar(request.user, shown, narrowed),
    }
    return page(request, "review.html", "rows", context | typed, status=status)


def _reading(request: HttpRequest, shown: Shown, narrowed: Any) -> Reading:
    found = question_list.questions(request.user, shown=shown, narrowed=narrowed, after=cursor(request, "after"))
    in_view = _ids(request.GET.get(_IN_VIEW, ""))
    if not in_view:
        return reading.begin(found)
    return reading.go_on(request.user, found, in_view=in_view, was_full=request.GET.get(_WAS_FULL) == "1")


def _ids(text: str) -> list[UUID]:
    """Those of the rows in view, each once; none where the address was made up."""
    try:
        return [UUID(each) for each in dict.fromkeys(text.split(",")[: review_queue.PAGE_SIZE])]
    except ValueError:
        return []


def _address(view: str, **further: str) -> str:
    query = _query({**_members(view), **further})
    return f"{reverse('review')}?{query}" if query else reverse("review")


def _query(members: Mapping[str, str]) -> str:
    return urlencode({name: value for name, value in members.items() if value})


def _members(query: str) -> dict[str, str]:
    return _sent(QueryDict(query))


def _sent(query: QueryDict) -> dict[str, str]:
    return {name: str(value) for name, value in query.items()}


def _shown(text: str) -> Shown:
    try:
        return Shown(text)
    except ValueError:
        return Shown.WAITING
