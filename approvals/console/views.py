"""One case, and the decision on it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods, require_safe

from approvals import decisions, queries
from approvals.console import passwords, task_form
from approvals.console.case_page import CHANNEL, act, show
from checkpoint.errors import DecisionIncomplete
from checkpoint.pages import number
from checkpoint.states import Decision


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
