"""People: who there is, and what one account may reach."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from checkpoint import occasions
from checkpoint.errors import ActionIncomplete, CheckpointError, Conflict
from checkpoint.identity import account_queries, accounts
from checkpoint.identity.accounts import Access, By
from checkpoint.pages import is_htmx, page

_STATUS_CODES: dict[type[CheckpointError], int] = {Conflict: 409, ActionIncomplete: 422}
_LONGEST_SEARCH = 150


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Accounts by name, with groups, teams and last sign-in."""
    search = request.GET.get("search", "")[:_LONGEST_SEARCH]
    after = request.GET.get("after", "")[:_LONGEST_SEARCH]
    found = account_queries.people(request.user, search=search, after=after)
    return page(request, "people.html", "rows", {"found": found, "search": search})


@require_safe
def person(request: HttpRequest, account_id: int) -> HttpResponse:
    """One account and what it may reach."""
    return _page(request, account_id)


@require_http_methods(["POST", "GET", "HEAD"])
def access(request: HttpRequest, account_id: int) -> HttpResponse:
    """An administrator's change. The answer to a GET is the account: that is where a reload after a refusal leads."""
    if request.method != "POST":
        return redirect("person", account_id)
    by: Any = request.user
    wanted = _wanted(request)
    try:
        accounts.change_access(
            By(occasions.current().actor(), by, request.POST.get("reason", "")),
            account_id,
            wanted,
            seen=request.POST.get("seen", ""),
        )
    except Conflict as refusal:
        return _page(request, account_id, refusal=refusal)
    except ActionIncomplete as refusal:
        return _page(request, account_id, wanted=wanted, refusal=refusal)
    if is_htmx(request):
        return _page(request, account_id, accepted=True)
    return redirect("person", account_id)


def _wanted(request: HttpRequest) -> Access:
    sent = request.POST
    return Access(sent.get("active") == "1", frozenset(sent.getlist("groups")), frozenset(sent.getlist("teams")))


def _page(
    request: HttpRequest,
    account_id: int,
    *,
    wanted: Access | None = None,
    refusal: CheckpointError | None = None,
    accepted: bool = False,
) -> HttpResponse:
    """The account as it is now; after a refusal with what was chosen and typed."""
    found = account_queries.account(request.user, account_id)
    present = accounts.access_of(found)
    groups, teams = account_queries.choices()
    status = next((code for kind, code in _STATUS_CODES.items() if isinstance(refusal, kind)), 200)
    context = {
        "account": found,
        "looked_at": present.seen,
        "wanted": wanted or present,
        "groups": groups,
        "teams": teams,
        "typed": request.POST.get("reason", "") if refusal else "",
        "refusal": str(refusal) if refusal else "",
        "accepted": accepted,
        "is_oneself": found.pk == request.user.pk,
    }
    return page(request, "person.html", "account", context, status=status)
