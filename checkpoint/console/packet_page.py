"""A workflow's resume packet, as its agent gets it."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from checkpoint import queries, resume_packets
from checkpoint.pages import page


@require_safe
def resume_packet(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """What would be issued now; looking at it issues nothing."""
    workflow = queries.visible_workflow(request.user, workflow_id)
    draft = resume_packets.preview(workflow_id, user=request.user)
    context = {"workflow": workflow, "draft": draft, "size": len(draft.text.encode())}
    return page(request, "resume_packet.html", "packet", context)
