"""What happens, in pages or as server-sent events: of one workflow, or of all workflows of the caller's teams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIRequest
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import NotAcceptable
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from checkpoint import queries
from checkpoint.api import paging
from checkpoint.api.representations import EventShown
from checkpoint.api.schema import PROBLEMS, pages_of
from checkpoint.api.view import ApiView, caller
from checkpoint.errors import NotFound
from checkpoint.events import event_sources, event_streams, following
from checkpoint.events.event_sources import Batch, Source, TeamsSource, WorkflowSource
from checkpoint.events.event_streams import LAST_EVENT, MEDIA_TYPE
from checkpoint.identity import tokens
from checkpoint.models import ApiToken, Scope
from checkpoint.permissions import teams_visible_to, workflows_visible_to


class _EventStream(JSONRenderer):
    """Chosen by `Accept: text/event-stream`; what it renders itself are refusals, which are JSON."""

    media_type = MEDIA_TYPE
    format = "stream"


_STREAM = OpenApiResponse(
    {"type": "object", "properties": {"id": {"type": "string"}, "data": {"type": "string"}}},
    description="Each message's data is one event as JSON; its id is where the next stream goes on.",
)
_RESPONSES = {(200, "application/json"): pages_of(EventShown), (200, MEDIA_TYPE): _STREAM, **PROBLEMS}
_PLACE = [
    OpenApiParameter(paging.AFTER, description="The id of the last event that you have."),
    OpenApiParameter(
        LAST_EVENT, location=OpenApiParameter.HEADER, description="The same, as readers of streams send it."
    ),
]


class WorkflowEvents(ApiView):
    """What happened to a workflow."""

    scopes = {"GET": Scope.READ}
    renderer_classes = [JSONRenderer, _EventStream]

    @extend_schema(operation_id="workflow_events", parameters=_PLACE, responses=_RESPONSES)
    def get(self, request: Request, workflow_id: UUID) -> HttpResponseBase:
        """From the first event on. `next` is where to ask again; a stream goes on by itself, for fifteen minutes."""
        queries.visible_workflow(caller(request), workflow_id)
        return _answer(
            request,
            WorkflowSource(workflow_id),
            lambda account: workflows_visible_to(account).filter(pk=workflow_id).exists(),
        )


class TeamEvents(ApiView):
    """What happens to the workflows that the caller sees."""

    scopes = {"GET": Scope.READ}
    renderer_classes = [JSONRenderer, _EventStream]

    @extend_schema(
        operation_id="list_events",
        parameters=[OpenApiParameter("team", description="Only of this team."), *_PLACE],
        responses=_RESPONSES,
    )
    def get(self, request: Request) -> HttpResponseBase:
        """From now on, or from a place of the last seven days."""
        teams = teams_visible_to(caller(request))
        if slug := request.query_params.get("team", ""):
            teams = teams.filter(slug=slug)
        ids = set(teams.values_list("pk", flat=True))
        if slug and not ids:
            raise NotFound("There is no such team that you may see.")
        return _answer(
            request,
            TeamsSource(ids),
            lambda account: ids <= set(teams_visible_to(account).values_list("pk", flat=True)),
        )


def _answer(request: Request, source: Source, may_read: Callable[[User], bool]) -> HttpResponseBase:
    after = request.headers.get(LAST_EVENT, "") or request.query_params.get(paging.AFTER, "")
    if getattr(request.accepted_renderer, "media_type", "") == MEDIA_TYPE:
        return _stream(request, source, after, may_read)
    batch = source.read(source.first_place(after), event_sources.horizon())
    following_page = f"{request.path}?{urlencode({**request.query_params.dict(), paging.AFTER: batch.place})}"
    return Response({"items": EventShown(batch.events, many=True).data, "next": following_page})


def _stream(request: Request, source: Source, after: str, may_read: Callable[[User], bool]) -> HttpResponseBase:
    if not isinstance(request._request, ASGIRequest):
        raise NotAcceptable("This server answers with pages only; ask for application/json.")
    token = request.auth
    assert isinstance(token, ApiToken)  # HasScope lets nobody in without one

    def admitted() -> bool:
        account = tokens.account_in_force(token.pk)
        return account is not None and may_read(account)

    return event_streams.stream(following.follow(source, after=after, owner=token.pk, admitted=admitted), _messages)


def _messages(batch: Batch) -> str:
    shown: list[dict[str, Any]] = list(EventShown(batch.events, many=True).data)
    return "".join(event_streams.message(place=each["id"], data=json.dumps(each, cls=JSONEncoder)) for each in shown)
