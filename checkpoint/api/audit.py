"""The audit over all streams: searched, one entry, and exported with its proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import batched
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint.api import paging
from checkpoint.api.representations import AuditEntryShown
from checkpoint.api.schema import PROBLEMS, pages_of
from checkpoint.api.view import ApiView, actor_of, caller
from checkpoint.events.streamed import streamed
from checkpoint.models import Scope
from checkpoint.trail import audit_export, audit_search
from checkpoint.trail.audit_filter import AuditFilter, read_filter
from checkpoint.trail.audit_formats import CONTENT_TYPES, FORMATS
from checkpoint.trail.audit_search import Place

_LINES = 500
_FILTER = [
    OpenApiParameter(field.name, description=f"As on the audit's page: {field.name}.") for field in fields(AuditFilter)
]


class Audit(ApiView):
    """Who did what to what, and why."""

    scopes = {"GET": Scope.AUDIT}

    @extend_schema(
        operation_id="search_audit",
        parameters=[*_FILTER, OpenApiParameter(paging.AFTER, description="From “next” of the page before.")],
        responses={200: pages_of(AuditEntryShown), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """The newest first. A page can end early where much was looked through; `next` goes on from there."""
        found = audit_search.find(caller(request), _narrowed(request), before=_place(request))
        following = None
        if found.following is not None:
            query = {**request.query_params.dict(), paging.AFTER: str(found.following)}
            following = f"{request.path}?{urlencode(query)}"
        return Response({"items": AuditEntryShown(found.rows, many=True).data, "next": following})


class OneAuditEntry(ApiView):
    """One entry."""

    scopes = {"GET": Scope.AUDIT}

    @extend_schema(operation_id="read_audit_entry", responses={200: AuditEntryShown, **PROBLEMS})
    def get(self, request: Request, stream: UUID, seq: int) -> Response:
        """The exact text that was hashed, and whether it still is."""
        return Response(AuditEntryShown(audit_search.entry(caller(request), stream, seq).entry).data)


class _Lines(JSONRenderer):
    """Whatever the caller accepts; `form` chooses. What it renders itself are refusals."""

    media_type = "*/*"


class AuditExport(ApiView):
    """The entries that match, with what proves them."""

    scopes = {"GET": Scope.AUDIT}
    renderer_classes = [_Lines]

    @extend_schema(
        operation_id="export_audit",
        parameters=[*_FILTER, OpenApiParameter("form", enum=list(FORMATS), description="jsonl, or csv for people.")],
        responses={
            (200, "application/x-ndjson"): OpenApiResponse({"type": "string"}, description="docs/audit.md tells it."),
            (200, "text/csv"): OpenApiResponse({"type": "string"}),
            **PROBLEMS,
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Streamed; the export is in the audit itself."""
        form = request.query_params.get("form", "jsonl")
        if form not in FORMATS:
            raise ParseError(f"form: choose one of {', '.join(FORMATS)}.")
        records = audit_export.export(_narrowed(request), person=caller(request), actor=actor_of(request))
        lines = ("".join(some) for some in batched(FORMATS[form](records), _LINES))
        return _answer(request, lines, CONTENT_TYPES[form])


def _answer(request: Request, parts: Iterator[str], content_type: str) -> StreamingHttpResponse:
    body: Any = streamed(parts) if isinstance(request._request, ASGIRequest) else parts
    return StreamingHttpResponse(body, content_type=content_type, headers={"Cache-Control": "private, no-store"})


def _narrowed(request: Request) -> AuditFilter:
    given = request.query_params
    return read_filter({field.name: given.get(field.name, "")[:200] for field in fields(AuditFilter)})


def _place(request: Request) -> Place | None:
    text = request.query_params.get(paging.AFTER, "")
    place = Place.read(text)
    if text and (place is None or not 0 < place.seq < 2**63):
        raise ParseError(f"{paging.AFTER}: this is no place; take the address of the next page from “next”.")
    return place
