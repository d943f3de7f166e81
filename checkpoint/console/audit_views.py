"""The audit over all streams: search, one entry, and exports."""

from __future__ import annotations

from dataclasses import fields
from itertools import batched
from typing import Any
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_GET, require_safe

from checkpoint import occasions
from checkpoint.errors import FilterInvalid
from checkpoint.events.streamed import streamed
from checkpoint.pages import page
from checkpoint.trail import audit_anchors, audit_export, audit_search
from checkpoint.trail.audit_filter import MACHINE, PEOPLE, AuditFilter, read_filter
from checkpoint.trail.audit_formats import CONTENT_TYPES, FORMATS
from checkpoint.trail.audit_search import Found, Place

_LINES = 500
_CHANNELS = ("console", "command", "api", "engine", "shell")
_LONGEST = 200


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """The newest entries that match, over all streams."""
    fault, found, given = "", Found([], None), _given(request.GET)
    try:
        before = Place.read(request.GET.get("before", ""))
        found = audit_search.find(request.user, read_filter(given), before=before)
    except FilterInvalid as error:
        fault = str(error)
    context = {
        "given": given,
        "asked": any(given.values()),
        "fault": fault,
        "found": found,
        "following": _address(given, before=str(found.following)),
        "export": {form: _address(given, format=form) for form in FORMATS},
        "looked_through": f"{audit_search.LOOKED_THROUGH:,}",
        "newest_anchor": audit_anchors.newest(),
        "verbs": audit_search.recent_verbs,
        "channels": _CHANNELS,
        "who": {PEOPLE: "people", MACHINE: "the engine"},
    }
    return page(request, "audit.html", "rows", context, status=422 if fault else 200)


def _given(query: QueryDict) -> dict[str, str]:
    return {field.name: query.get(field.name, "")[:_LONGEST] for field in fields(AuditFilter)}


def _address(given: dict[str, str], **further: str) -> str:
    """A query of what was given and what is added."""
    query = QueryDict(mutable=True)
    query.update({name: value for name, value in {**given, **further}.items() if value})
    return query.urlencode()


@require_safe
def entry(request: HttpRequest, stream: UUID, seq: int) -> HttpResponse:
    """One entry: the exact text, its hash, and what stands before and after it."""
    shown = audit_search.entry(request.user, stream, seq)
    context = {"shown": shown.entry, "before": shown.before, "after": shown.after, "follows": shown.follows}
    return page(request, "audit_entry.html", "entry", context)


@require_GET  # not HEAD: every export is written to the audit
def export(request: HttpRequest) -> HttpResponseBase:
    """The entries that match, as a file that proves itself."""
    form = request.GET.get("format", "jsonl")
    if form not in FORMATS:
        raise FilterInvalid(f"format: choose one of {', '.join(FORMATS)}.")
    person: Any = request.user
    narrowed = read_filter(_given(request.GET))
    records = audit_export.export(narrowed, person=person, actor=occasions.current().actor())
    lines = ("".join(some) for some in batched(FORMATS[form](records), _LINES))
    body: Any = streamed(lines) if isinstance(request, ASGIRequest) else lines
    name = f"audit-{timezone.now():%Y%m%dT%H%M%SZ}.{form}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(body, content_type=CONTENT_TYPES[form], headers=headers)
