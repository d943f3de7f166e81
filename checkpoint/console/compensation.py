"""Having an effect undone: first the call that would be made, then the act."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from checkpoint import compensations, queries, workflows
from checkpoint.errors import ActionIncomplete, CompensationRefused, Conflict, Forbidden
from checkpoint.models import Step
from checkpoint.pages import number, page
from checkpoint.people import Actor
from checkpoint.permissions import ADMINISTER_WORKFLOW


@require_http_methods(["GET", "HEAD", "POST"])
def compensation(request: HttpRequest, step_id: UUID) -> HttpResponse:
    """The call that would undo the step's effect; with POST it is asked for."""
    if request.method != "POST":
        return _page(request, step_id)
    assert isinstance(request.user, User)  # the middleware lets nobody in who has no account
    reason = request.POST.get("reason", "")
    try:
        made = compensations.request(
            step_id=step_id,
            step_version=number(request.POST.get("step_version")) or 0,
            actor=Actor(request.user.get_username(), "console"),
            user=request.user,
            reason=reason,
        )
    except ActionIncomplete as refusal:
        return _page(request, step_id, 422, reason=reason, refusal=str(refusal).partition(": ")[2], field="reason")
    except Conflict as refusal:
        return _page(request, step_id, 409, reason=reason, refusal=str(refusal))
    return redirect("workflow", made.pk)


def _page(request: HttpRequest, step_id: UUID, status: int = 200, **typed: str) -> HttpResponse:
    found = queries.visible_step(request.user, step_id)
    if not workflows.may_abandon(request.user, found.workflow):
        raise Forbidden(
            f"Only who submitted this workflow, or an administrator with “{ADMINISTER_WORKFLOW}”, can have it undone."
        )
    return page(request, "compensation.html", "main", {"step": found, **_foreseen(found), **typed}, status=status)


def _foreseen(step: Step) -> dict[str, Any]:
    begun = compensations.under_way(step)
    if begun is not None:
        return {"begun": begun}
    try:
        return {"undoing": compensations.foresee(step)}
    except CompensationRefused as refusal:
        return {"impossible": str(refusal)}
