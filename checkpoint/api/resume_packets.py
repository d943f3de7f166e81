"""The packet from which an agent that starts again rebuilds its context."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint import clock, queries, resume_packets
from checkpoint.api.representations import PacketShown
from checkpoint.api.schema import PROBLEMS
from checkpoint.api.view import ApiView, actor_of, caller, tagged
from checkpoint.models import ResumePacket, Scope
from checkpoint.resume_packets import BYTES, DEFAULT_BUDGET, LARGEST_BUDGET, SMALLEST_BUDGET

_BUDGET = {"type": "integer", "minimum": SMALLEST_BUDGET, "maximum": LARGEST_BUDGET, "default": DEFAULT_BUDGET}


class CurrentPacket(ApiView):
    """Where a workflow is, for its agent."""

    scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="read_resume_packet",
        parameters=[
            OpenApiParameter("budget", _BUDGET, description="The largest packet that is wanted."),
            OpenApiParameter("counted_in", description="What the budget counts: bytes, or a tokenizer's tokens."),
        ],
        responses={200: PacketShown, **PROBLEMS},
    )
    def get(self, request: Request, workflow_id: UUID) -> Response:
        """Issued, hashed and kept. Constraints, decisions that are not made and the next action are always in it."""
        queries.visible_workflow(caller(request), workflow_id)
        packet = resume_packets.issue(
            workflow_id,
            actor=actor_of(request),
            user=caller(request),
            budget=_budget(request),
            counted_in=request.query_params.get("counted_in", BYTES),
        )
        return tagged(request, _shown(packet), packet.sha256)


class IssuedPacket(ApiView):
    """A packet as it was issued."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_issued_packet", responses={200: PacketShown, **PROBLEMS})
    def get(self, request: Request, workflow_id: UUID, sha256: str) -> Response:
        """By its hash."""
        packet = resume_packets.visible_packet(caller(request), workflow_id, sha256)
        return tagged(request, _shown(packet), packet.sha256)


def _budget(request: Request) -> int:
    text = request.query_params.get("budget", str(DEFAULT_BUDGET))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ParseError("budget: this is no whole number.")
    return int(text)


def _shown(packet: ResumePacket) -> Any:
    old = resume_packets.old_facts(packet, clock.now())
    return PacketShown(packet, context={"packet": resume_packets.contents(packet), "old": old}).data
