"""Tokens for the API: which there are, a new one, which is shown once, and ending one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from checkpoint import clock, occasions
from checkpoint.errors import ActionIncomplete, NotFound
from checkpoint.identity import account_queries, tokens
from checkpoint.identity.accounts import By
from checkpoint.models import ApiToken, Scope
from checkpoint.pages import cursor, number, page

PAGE_SIZE = 50
_DAYS = 90


@require_http_methods(["GET", "HEAD", "POST"])
def token_list(request: HttpRequest) -> HttpResponse:
    """The tokens, the newest first; with POST another is issued. Its text is on that answer and nowhere else."""
    if request.method != "POST":
        return _page(request)
    sent = request.POST
    scopes, typed = sent.getlist("scopes"), {name: sent.get(name, "") for name in ("account", "name", "days", "reason")}
    try:
        account = account_queries.account_named(_person(request), typed["account"].strip())
        lifetime = timedelta(days=number(typed["days"]) or 0)
        made, text = tokens.issue(_by(request), account, name=typed["name"], scopes=scopes, lifetime=lifetime)
    except ActionIncomplete as refusal:
        field, _, sentence = str(refusal).partition(": ")
        field = "days" if field == "lifetime" else field
        return _page(request, 422, typed=typed, chosen=scopes, field=field, refusal=sentence)
    except NotFound:
        return _page(request, 422, typed=typed, chosen=scopes, field="account", refusal="There is no such account.")
    return _unstored(_page(request, made=made, text=text))


@require_http_methods(["GET", "HEAD", "POST"])
def revocation(request: HttpRequest, token_id: UUID) -> HttpResponse:
    """Ends a token at once. The answer to a GET is the list: that is where a reload leads."""
    if request.method != "POST":
        return _page(request)
    try:
        ended = tokens.revoke(_by(request), token_id)
    except ActionIncomplete as refusal:
        return _page(request, 422, unended=token_id, refusal=str(refusal).partition(": ")[2])
    return _page(request, ended=ended)


def _by(request: HttpRequest) -> By:
    return By(occasions.current().actor(), _person(request), request.POST.get("reason", ""))


def _person(request: HttpRequest) -> Any:
    return request.user  # the middleware lets nobody in who has no account


def _page(request: HttpRequest, status: int = 200, **more: Any) -> HttpResponse:
    found = tokens.tokens(_person(request))
    if before := cursor(request, "before"):
        found = found.filter(pk__lt=before)
    rows: list[ApiToken] = list(found[: PAGE_SIZE + 1])
    context = {
        "tokens": rows[:PAGE_SIZE],
        "following": rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None,
        "now": clock.now(),
        "scopes": Scope.choices,
        "chosen": [Scope.READ, Scope.SUBMIT],
        "typed": {"days": _DAYS},
        "longest": tokens.LONGEST_LIFETIME.days,
    }
    return page(request, "tokens.html", "tokens", context | more, status=status)


def _unstored(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "private, no-store"
    return response
