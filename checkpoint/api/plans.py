"""The plan of a workflow: reading it, appending to it, sealing it."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint import appending, queries
from checkpoint.api import paging
from checkpoint.api.bodies import JsonDocument, YamlDocument, body_of, texts
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.representations import AppendedShown, StepInList
from checkpoint.api.schema import APPENDED, IF_MATCH, KEY, PROBLEMS, REASON, pages_of
from checkpoint.api.view import ApiView, actor_of, caller, require_match
from checkpoint.appending import Appended
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import REASON_LIMIT


class Steps(ApiView):
    """The plan."""

    scopes = {"GET": Scope.READ, "POST": Scope.SUBMIT}
    parser_classes = [JsonDocument, YamlDocument]

    @extend_schema(
        operation_id="list_steps",
        parameters=[OpenApiParameter(paging.AFTER, description="From “next” of the page before.")],
        responses={200: pages_of(StepInList), **PROBLEMS},
    )
    def get(self, request: Request, workflow_id: UUID) -> Response:
        """In the plan's order, without payloads; a step that an edit replaced is listed as superseded."""
        found = queries.visible_workflow(caller(request), workflow_id)
        page = queries.plan(found, after=paging.place(request))
        return paging.answer(request, page, lambda row: StepInList(row, context={"request": request}).data)

    @extend_schema(
        operation_id="append_steps",
        parameters=[KEY, IF_MATCH],
        request=APPENDED,
        responses={201: AppendedShown, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep, workflow_id: UUID) -> Reply:
        """Appends steps to a plan that is not sealed, all or none; they follow what is there."""
        found = queries.visible_workflow(caller(request), workflow_id)
        require_match(request, found.version)
        answered = _Answered(request, 201, keep)
        appending.append(
            workflow_id=workflow_id,
            document=body_of(request).document,
            tools=newest_tools(found.team),
            actor=actor_of(request),
            user=caller(request),
            alongside=answered.keep,
        )
        return answered.reply


class Seal(ApiView):
    """The end of a plan."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(
        operation_id="seal_workflow",
        parameters=[KEY, IF_MATCH],
        request=REASON,
        responses={200: AppendedShown, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep, workflow_id: UUID) -> Reply:
        """Nothing is appended any more; once every step is verified the workflow is completed."""
        reason = texts(request, reason=REASON_LIMIT * 4)["reason"]
        require_match(request, queries.visible_workflow(caller(request), workflow_id).version)
        answered = _Answered(request, 200, keep)
        appending.seal(
            workflow_id=workflow_id,
            reason=reason,
            actor=actor_of(request),
            user=caller(request),
            alongside=answered.keep,
        )
        return answered.reply


class _Answered:
    """The reply, kept in the transaction of the change."""

    reply: Reply

    def __init__(self, request: Request, status: int, keep: Keep) -> None:
        self._request, self._status, self._keep = request, status, keep

    def keep(self, appended: Appended) -> None:
        """Makes the reply of what was stored, and keeps it."""
        stored = {
            "workflow": queries.visible_workflow(caller(self._request), appended.workflow.pk),
            "steps": appended.steps,
        }
        self.reply = reply(self._status, AppendedShown(stored, context={"request": self._request}).data)
        self._keep(self.reply)
