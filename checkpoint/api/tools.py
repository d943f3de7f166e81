"""The tools that agents can use."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint import tool_versions
from checkpoint.api.representations import ToolShown
from checkpoint.api.schema import PROBLEMS
from checkpoint.api.view import ApiView
from checkpoint.canonical import string_problem
from checkpoint.errors import NotFound
from checkpoint.models import Scope


class Tools(ApiView):
    """All of them."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="list_tools", responses={200: ToolShown(many=True), **PROBLEMS})
    def get(self, request: Request) -> Response:
        """The version in force of each, by name."""
        return Response(ToolShown(tool_versions.newest_versions(), many=True).data)


class OneTool(ApiView):
    """One of them."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_tool", responses={200: ToolShown, **PROBLEMS})
    def get(self, request: Request, name: str) -> Response:
        """The version in force."""
        found = None if string_problem(name) else tool_versions.newest_versions().filter(name=name).first()
        if found is None:
            raise NotFound("There is no such tool; the list of tools has those that there are.")
        return Response(ToolShown(found).data)
