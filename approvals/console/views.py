"""The review queue, one case, and the decision on it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from approvals import decisions, queries, review_queue
from approvals.consequences import HAPPENING
from approvals.console.answers import Typed, arguments_intact, contract_of, offered
from approvals.permissions import DECIDE_CASE
from approvals.where_to_look import place
from checkpoint.errors import CheckpointError, Conflict, DecisionIncomplete, Forbidden
from checkpoint.models import Case
from checkpoint.pages import cursor, is_htmx, page
from checkpoint.states import STEP_TERMINAL, CaseStatus, Decision, StepStatus

CHANNEL = "console"
_STATUS_CODES: dict[type[CheckpointError], int] = {Conflict: 409, Forbidden: 403, DecisionIncomplete: 422}


@require_GET
def review(request: HttpRequest) -> HttpResponse:
    """Open cases: what cannot be undone first, then the oldest."""
    found = review_queue.queue(request.user, after=cursor(request, "after"))
    return page(request, "review.html", "rows", {"found": found})


@require_GET
def case(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """One case with all that a decision needs."""
    return _case_page(request, queries.visible_case(request.user, case_id))


@require_http_methods(["POST", "GET"])
def decision(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """A person's answer. The answer to a GET is the case: that is where a reload after a refusal leads."""
    if request.method == "GET":
        return redirect("case", case_id)
    try:
        decisions.decide(**_answer(request, case_id))
    except (Conflict, Forbidden, DecisionIncomplete) as refusal:
        return _refused(request, case_id, refusal)
    if is_htmx(request):
        return _case_page(request, queries.visible_case(request.user, case_id), Typed(accepted=True))
    return redirect("case", case_id)


def _answer(request: HttpRequest, case_id: UUID) -> dict[str, Any]:
    sent = request.POST
    version = sent.get("step_version", "")
    return {
        "case_id": case_id,
        "kind": _kind(sent.get("kind", "")),
        "person": request.user,
        "channel": CHANNEL,
        "reason": sent.get("reason", ""),
        "operation_id": sent.get("operation_id", ""),
        "step_version": int(version) if version.isascii() and version.isdigit() else 0,
        "arguments_hash": sent.get("arguments_hash", ""),
    }


def _kind(text: str) -> Decision:
    try:
        return Decision(text)
    except ValueError:
        raise DecisionIncomplete(f"kind: choose one of {', '.join(Decision)}.") from None


def _refused(request: HttpRequest, case_id: UUID, refusal: CheckpointError) -> HttpResponse:
    """The case as it is now, with the refusal beside what was typed."""
    status = next(code for kind, code in _STATUS_CODES.items() if isinstance(refusal, kind))
    field, _, sentence = str(refusal).partition(": ")
    if field not in {"reason", "operation_id"}:
        field, sentence = "", str(refusal)
    typed = Typed(
        kind=request.POST.get("kind", ""),
        reason=request.POST.get("reason", ""),
        operation_id=request.POST.get("operation_id", ""),
        field=field,
        refusal=sentence,
    )
    return _case_page(request, queries.visible_case(request.user, case_id), typed, status)


def _case_page(request: HttpRequest, found: Case, typed: Typed | None = None, status: int = 200) -> HttpResponse:
    return page(request, "case.html", "answer", _case_context(request, found, typed), status=status, seen=_seen(found))


def _seen(found: Case) -> str:
    """Names everything on the page that can change. Its forms are left alone while nothing else does."""
    evidence = [item.pk for item in found.step.newest_evidence[:1]]  # type: ignore[attr-defined]
    return "-".join(str(part) for part in (found.status, found.step.version, found.workflow.version, *evidence))


def _case_context(request: HttpRequest, found: Case, typed: Typed | None) -> dict[str, Any]:
    is_open, contract, intact = found.status == CaseStatus.OPEN, contract_of(found), arguments_intact(found)
    may_decide = request.user.has_perm(DECIDE_CASE)
    return {
        "case": found,
        "step": found.step,
        "contract": contract,
        "place": place(contract, key=found.step.idempotency_key, operation_id=found.step.operation_id),
        "intact": intact,
        "may_decide": may_decide,
        "answers": offered(found, typed or Typed()) if is_open and may_decide and intact else [],
        "typed": typed,
        "next_case": None if is_open else review_queue.queue(request.user).rows[:1],
        "other_case": queries.open_case_of_step(found),
        "happening": HAPPENING[StepStatus(found.step.status)],
        "settled": not is_open and found.step.status in STEP_TERMINAL,
    }
