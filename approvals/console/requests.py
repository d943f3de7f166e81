"""One request for approval, the answer to it, and taking it back."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from approvals import request_queries, requests, withdrawals
from approvals.console import passwords
from approvals.console.answers import Typed
from approvals.console.request_page import context, seen
from approvals.request_consequences import RequestAnswer
from checkpoint.errors import CheckpointError, Conflict, DecisionIncomplete, Forbidden
from checkpoint.pages import is_htmx, page
from checkpoint.states import Decision

CHANNEL = "console"
_STATUS_CODES: dict[type[CheckpointError], int] = {Conflict: 409, Forbidden: 403, DecisionIncomplete: 422}


@require_safe
def approval(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """One request with all that an answer needs."""
    return _page(request, approval_id)


@require_http_methods(["POST", "GET", "HEAD"])
def answer(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """A person's answer. The answer to a GET is the request: that is where a reload after a refusal leads."""
    return _act(request, approval_id, _answer)


@require_http_methods(["POST", "GET", "HEAD"])
def withdrawal(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """The request is taken back."""
    return _act(request, approval_id, _withdraw)


def _answer(request: HttpRequest, approval_id: UUID) -> None:
    requests.answer(
        approval_id=approval_id,
        kind=_kind(request.POST.get("kind", "")),
        person=request.user,  # type: ignore[arg-type]  # the middleware lets nobody in who has no account
        channel=CHANNEL,
        reason=request.POST.get("reason", ""),
        arguments_hash=request.POST.get("arguments_hash", ""),
        authentication=passwords.given(request),
    )


def _withdraw(request: HttpRequest, approval_id: UUID) -> None:
    withdrawals.withdraw(
        approval_id=approval_id,
        person=request.user,  # type: ignore[arg-type]  # as above
        channel=CHANNEL,
        reason=request.POST.get("reason", ""),
    )


def _kind(text: str) -> Decision:
    try:
        return Decision(text)
    except ValueError:
        raise DecisionIncomplete("kind: choose approve, reject or request_changes.") from None


def _act(request: HttpRequest, approval_id: UUID, verb: Callable[[HttpRequest, UUID], None]) -> HttpResponse:
    if request.method != "POST":
        return redirect("approval", approval_id)
    try:
        verb(request, approval_id)
    except (Conflict, Forbidden, DecisionIncomplete) as refusal:
        return _refused(request, approval_id, refusal)
    if is_htmx(request):
        return _page(request, approval_id, Typed(accepted=True))
    return redirect("approval", approval_id)


def _refused(request: HttpRequest, approval_id: UUID, refusal: CheckpointError) -> HttpResponse:
    """The request as it is now, with the refusal beside what was typed."""
    status = next(code for kind, code in _STATUS_CODES.items() if isinstance(refusal, kind))
    field, sentence = passwords.about(refusal) or str(refusal).partition(": ")[::2]
    if field not in ("reason", passwords.FIELD):
        field, sentence = "", str(refusal)
    typed = Typed(
        kind=request.POST.get("kind", RequestAnswer.WITHDRAW),
        reason=request.POST.get("reason", ""),
        field=field,
        refusal=sentence,
    )
    return _page(request, approval_id, typed, status)


def _page(request: HttpRequest, approval_id: UUID, typed: Typed | None = None, status: int = 200) -> HttpResponse:
    found = request_queries.visible_request(request.user, approval_id)
    shown = context(found, request, typed or Typed())
    return page(request, "approval.html", "request", shown, status=status, seen=seen(found))
