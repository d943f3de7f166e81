"""The tools that agents can use."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint import tool_versions
from checkpoint.agents import agent_tools
from checkpoint.api.bodies import JsonDocument, YamlDocument, body_of
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.representations import ToolShown
from checkpoint.api.schema import KEY, PROBLEMS, TOOL
from checkpoint.api.view import ApiView, actor_of, caller, team_named
from checkpoint.canonical import string_problem
from checkpoint.errors import NotFound
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope, ToolVersion
from checkpoint.permissions import teams_visible_to


class Tools(ApiView):
    """All of them."""

    scopes = {"GET": Scope.READ, "POST": Scope.SUBMIT}
    parser_classes = [JsonDocument, YamlDocument]

    @extend_schema(operation_id="list_tools", responses={200: ToolShown(many=True), **PROBLEMS})
    def get(self, request: Request) -> Response:
        """The version in force of each, by name: everybody's, and those of one's own teams."""
        return Response(ToolShown(_visible(request), many=True).data)

    @extend_schema(
        operation_id="register_tool",
        parameters=[KEY, OpenApiParameter("team", description="Whose agents carry it out; as at submission.")],
        request=TOOL,
        responses={201: ToolShown, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep) -> Reply:
        """Registers what the team's agents carry out themselves; what differs from before is a new version."""
        made: list[Reply] = []

        def kept(tool: ToolVersion) -> None:
            made.append(reply(201, ToolShown(tool).data, location=reverse("api:tool", args=[tool.name])))
            keep(made[0])

        agent_tools.register(
            body_of(request).document,
            team=team_named(request),
            actor=actor_of(request),
            user=caller(request),
            alongside=kept,
        )
        return made[0]


class OneTool(ApiView):
    """One of them."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_tool", responses={200: ToolShown, **PROBLEMS})
    def get(self, request: Request, name: str) -> Response:
        """The version in force."""
        found = None if string_problem(name) else _visible(request).filter(name=name).first()
        if found is None:
            raise NotFound("There is no such tool; the list of tools has those that there are.")
        return Response(ToolShown(found).data)


def _visible(request: Request) -> QuerySet[ToolVersion]:
    of_teams = Q(team=None) | Q(team__in=teams_visible_to(caller(request)))
    return tool_versions.newest_versions().select_related("team").filter(of_teams)
