"""Winding a workflow down: first what would end and what is in the air, then the act."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from checkpoint import queries, workflows
from checkpoint.errors import ActionIncomplete, Conflict, Forbidden
from checkpoint.explaining import endings
from checkpoint.models import Workflow
from checkpoint.pages import page
from checkpoint.people import Actor
from checkpoint.permissions import ADMINISTER_WORKFLOW
from checkpoint.states import WORKFLOW_TERMINAL, StepStatus


@require_http_methods(["GET", "HEAD", "POST"])
def abandonment(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """What abandoning the workflow would do; with POST it is done."""
    if request.method != "POST":
        return _page(request, workflow_id)
    assert isinstance(request.user, User)  # the middleware lets nobody in who has no account
    actor = Actor(request.user.get_username(), "console")
    reason = request.POST.get("reason", "")
    try:
        workflows.abandon(workflow_id=workflow_id, actor=actor, user=request.user, reason=reason)
    except ActionIncomplete as refusal:
        return _page(request, workflow_id, 422, reason=reason, refusal=str(refusal).partition(": ")[2], field="reason")
    except Conflict as refusal:
        return _page(request, workflow_id, 409, reason=reason, refusal=str(refusal))
    return redirect("workflow", workflow_id)


def _page(request: HttpRequest, workflow_id: UUID, status: int = 200, **typed: str) -> HttpResponse:
    found = queries.visible_workflow(request.user, workflow_id)
    if not workflows.may_abandon(request.user, found):
        raise Forbidden(
            f"Only who submitted this workflow, or an administrator with “{ADMINISTER_WORKFLOW}”, can wind it down."
        )
    return page(request, "abandonment.html", "foreseen", _context(found) | typed, status=status)


def _context(found: Workflow) -> dict[str, Any]:
    foreseen = endings.of(found)
    return {
        "workflow": found,
        "foreseen": foreseen,
        "in_the_air": [(step, endings.STILL_HAPPENS[StepStatus(step.status)]) for step in foreseen.in_the_air.rows],
        "ended": found.status in WORKFLOW_TERMINAL,
        "over": found.status in WORKFLOW_TERMINAL or found.winding_down,
    }
