"""What people do about a case besides answering it: each action is an address, and answers with the case's page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods, require_safe

from approvals.casework import assignments, attachments, comments, escalations, snoozes
from approvals.casework.attachments import File
from approvals.console.case_page import CHANNEL, act
from checkpoint.errors import ActionIncomplete
from checkpoint.storage import artifact_downloads

_action = require_http_methods(["POST", "GET", "HEAD"])
WORK = "#work"


def _bound(verb: Callable[..., object], request: HttpRequest, case_id: UUID, **more: Any) -> Callable[[], object]:
    """The verb for this case and whoever the session belongs to, never for whom the form names (S14)."""
    return lambda: verb(case_id=case_id, person=request.user, channel=CHANNEL, **more)


@_action
def claim(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """The person takes the case on."""
    return act(request, case_id, "claim", _bound(assignments.claim, request, case_id))


@_action
def release(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """The person lets it go."""
    return act(request, case_id, "release", _bound(assignments.release, request, case_id))


@_action
def assignment(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """Somebody is given the case."""
    sent = request.POST
    verb = _bound(
        assignments.assign,
        request,
        case_id,
        to=sent.get("to", ""),
        reason=sent.get("reason", ""),
        seen=_uuid(sent.get("seen", "")),
    )
    return act(request, case_id, "assignment", verb, anchor=WORK)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


@_action
def snooze(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """The case is put aside for a while."""
    hours, reason = request.POST.get("hours", ""), request.POST.get("reason", "")
    return act(request, case_id, "snooze", lambda: _snooze(request, case_id, hours, reason), anchor=WORK)


def _snooze(request: HttpRequest, case_id: UUID, hours: str, reason: str) -> None:
    if not hours.isascii() or not hours.isdigit() or len(hours) > 4:
        raise ActionIncomplete("hours", "choose for how long.")
    _bound(snoozes.snooze, request, case_id, lasting=timedelta(hours=int(hours)), reason=reason)()


@_action
def wake(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """The case is looked at again before its time."""
    return act(request, case_id, "wake", _bound(snoozes.wake, request, case_id))


@_action
def comment(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """A person says something about the case."""
    verb = _bound(comments.comment, request, case_id, text=request.POST.get("text", ""))
    return act(request, case_id, "comment", verb, anchor="#comments")


@_action
def escalation(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """Those on call are told."""
    verb = _bound(escalations.escalate, request, case_id, reason=request.POST.get("reason", ""))
    return act(request, case_id, "escalation", verb, anchor=WORK)


@_action
def file(request: HttpRequest, case_id: UUID) -> HttpResponse:
    """A person brings a file."""
    return act(request, case_id, "file", lambda: _attach(request, case_id), anchor="#files")


def _attach(request: HttpRequest, case_id: UUID) -> None:
    sent = request.FILES.get("file")
    if sent is None:
        raise ActionIncomplete("file", "choose a file.")
    if sent.size is not None and sent.size > settings.CHECKPOINT_LARGEST_ATTACHMENT:
        raise ActionIncomplete("file", f"at most {settings.CHECKPOINT_LARGEST_ATTACHMENT:,} bytes.")
    brought = File(name=sent.name or "", media_type=sent.content_type or "", chunks=sent.chunks())
    _bound(attachments.attach, request, case_id, file=brought, reason=request.POST.get("reason", ""))()


@require_safe
def download(request: HttpRequest, attachment_id: UUID) -> HttpResponseBase:
    """The file as it was brought, held against its hash; a browser neither renders nor runs it."""
    artifact = attachments.visible_attachment(request.user, attachment_id).artifact
    return artifact_downloads.attachment(request, artifact)
