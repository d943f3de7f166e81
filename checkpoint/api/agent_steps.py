"""Steps that the agent carries out itself: begun under a fence, held, recorded."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from checkpoint import queries
from checkpoint.agents import agent_steps
from checkpoint.agents.agent_reports import Recorded
from checkpoint.agents.agent_steps import Begun, Waiting
from checkpoint.api.agent_bodies import lease_and_fence, lease_of, report_in
from checkpoint.api.bodies import body_of
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.representations import BegunShown, LeaseShown, StepShown, WaitingShown
from checkpoint.api.schema import BEGIN, HOLD, KEY, PROBLEMS, RECORD
from checkpoint.api.view import ApiView, actor_of, caller
from checkpoint.errors import FenceMoved
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope

_LATE = (
    "You do not hold this step any more: nothing was written to it, and what you sent is kept as evidence, which may"
    " settle a question about it. Do nothing more, and read the step."
)


class Begin(ApiView):
    """The agent is about to act."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(
        operation_id="begin_step",
        parameters=[KEY],
        request=BEGIN,
        responses={201: BegunShown, 202: WaitingShown, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep, step_id: UUID) -> Reply:
        """Written ahead: with 201 act once, before the deadline, and record. With 202 do nothing, and ask again later.

        A 202 is not kept under its key, so the same request may be sent until it is begun; the 201 is.
        """
        lease = lease_of(body_of(request).document)
        made: list[Reply] = []

        def kept(begun: Begun) -> None:
            made.append(reply(201, BegunShown(_shown(begun)).data))
            keep(made[0])

        answer = agent_steps.begin(
            step_id=step_id, actor=actor_of(request), user=caller(request), lease_seconds=lease, alongside=kept
        )
        return made[0] if isinstance(answer, Begun) else reply(202, WaitingShown(_waiting(answer, request)).data)


class Lease(ApiView):
    """The agent still acts."""

    scopes = {"PUT": Scope.SUBMIT}

    @extend_schema(operation_id="hold_step", request=HOLD, responses={200: LeaseShown, **PROBLEMS})
    def put(self, request: Request, step_id: UUID) -> Response:
        """The heartbeat: so many seconds more, never past the deadline. With 409 stop."""
        seconds, fence = lease_and_fence(body_of(request).document)
        held = agent_steps.hold(step_id=step_id, fence=fence, user=caller(request), lease_seconds=seconds)
        return Response(LeaseShown({"lease_until": held[0], "deadline_at": held[1]}).data)


class Record(ApiView):
    """The agent has acted, or has not."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(operation_id="record_step", parameters=[KEY], request=RECORD, responses={200: StepShown, **PROBLEMS})
    @once
    def post(self, request: Request, keep: Keep, step_id: UUID) -> Reply:
        """How it went: a receipt, not applied, or not known. 409 `fence_moved`: kept as evidence, and no more."""
        fence, outcome = report_in(body_of(request).document)
        made: list[Reply] = []

        def kept(recorded: Recorded) -> None:
            if not recorded.late:
                shown = queries.visible_step(caller(request), recorded.step.pk)
                made.append(reply(200, StepShown(shown, context={"request": request}).data))
                keep(made[0])

        agent_steps.record(
            step_id=step_id,
            fence=fence,
            outcome=outcome,
            actor=actor_of(request),
            user=caller(request),
            alongside=kept,
        )
        if not made:
            raise FenceMoved(_LATE)
        return made[0]


def _shown(begun: Begun) -> dict[str, Any]:
    claim = begun.claim
    return {
        "step": claim.step_id,
        "attempt": claim.attempt_number,
        "fence": claim.fence,
        "idempotency_key": claim.idempotency_key,
        "arguments": json.loads(claim.arguments),
        "lease_until": begun.lease_until,
        "deadline_at": begun.deadline_at,
    }


def _waiting(waiting: Waiting, request: Request) -> dict[str, Any]:
    address = ""
    if waiting.id is not None:
        view, name = ("approval", "approval_id") if waiting.waits_for == "approval" else ("case", "case_id")
        address = reverse(f"approvals-api:{view}", kwargs={name: waiting.id}, request=request)
    return {
        "waits_for": waiting.waits_for,
        "detail": waiting.sentence,
        "look_at": address,
        "retry_at": waiting.retry_at,
    }
