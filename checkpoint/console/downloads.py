"""Payloads whole and exact, as attachments of plain text: a browser neither renders nor runs them."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from checkpoint import queries


@require_safe
def workflow_input(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """A workflow's input as it was hashed."""
    found = queries.visible_workflow(request.user, workflow_id)
    return _attachment(found.input, f"input-{workflow_id}.txt")


@require_safe
def step_arguments(request: HttpRequest, step_id: UUID) -> HttpResponse:
    """A step's arguments as they are sent; before they are resolved, as they were planned."""
    step = queries.visible_step(request.user, step_id)
    return _attachment(step.arguments or step.template, f"arguments-{step_id}.txt")


@require_safe
def evidence_facts(request: HttpRequest, evidence_id: UUID) -> HttpResponse:
    """A piece of evidence as it was hashed."""
    return _attachment(queries.visible_evidence(request.user, evidence_id).facts, f"facts-{evidence_id}.txt")


def _attachment(text: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)
