"""Who was told what, and whether it arrived: pages for those who look after notices, and each person's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from approvals.console.case_page import CHANNEL
from approvals.notifying import notice_channels, notice_queries, notice_settings, redelivery
from approvals.notifying.notice_channels import NewChannel
from approvals.notifying.notice_rules import ChannelFormat, NoticeKind, NoticeState
from approvals.notifying.notice_settings import Wishes
from checkpoint.errors import Conflict, SubmissionInvalid
from checkpoint.pages import cursor, page
from checkpoint.permissions import teams_visible_to

INVALID = 422

KIND_WORDS = {
    NoticeKind.ASKED: "a question or a request for approval waits that I may answer",
    NoticeKind.REMINDER: "it still waits",
    NoticeKind.ESCALATION: "nobody has answered it in time",
    NoticeKind.ASSIGNED: "somebody assigned a question to me",
    NoticeKind.SECOND_PERSON: "somebody answered, and a further person is needed, which may be me",
    NoticeKind.DECIDED: "a question or request about my workflow was answered",
    NoticeKind.OUTCOME: "my workflow has ended",
}


@require_safe
def notice_list(request: HttpRequest) -> HttpResponse:
    """The newest notices, narrowed to one state by the address's query."""
    state = request.GET.get("state", "")
    state = state if state in set(NoticeState) else ""
    found = notice_queries.notice_page(request.user, state=state, before=cursor(request, "before"))
    return page(request, "notices.html", "rows", {"found": found, "state": state, "states": list(NoticeState)})


@require_safe
def notice(request: HttpRequest, notice_id: UUID) -> HttpResponse:
    """One notice with every try at sending it."""
    return _notice_page(request, notice_id)


@require_http_methods(["POST", "GET", "HEAD"])
def notice_redelivery(request: HttpRequest, notice_id: UUID) -> HttpResponse:
    """Sends a notice again. The answer to a GET is the notice: that is where a reload after a refusal leads."""
    if request.method == "POST":
        try:
            redelivery.redeliver(notice_id=notice_id, person=request.user, channel=CHANNEL)  # type: ignore[arg-type]
        except Conflict as refusal:
            return _notice_page(request, notice_id, refusal=str(refusal), status=409)
    return redirect("notice", notice_id)


def _notice_page(request: HttpRequest, notice_id: UUID, *, refusal: str = "", status: int = 200) -> HttpResponse:
    found = notice_queries.visible_notice(request.user, notice_id)
    context = {"told": found, "refusal": refusal, "waits": found.state == NoticeState.WAITING}
    return page(request, "notice.html", "whole", context, status=status, seen=f"{found.state}-{found.attempt_count}")


@require_http_methods(["POST", "GET", "HEAD"])
def settings(request: HttpRequest) -> HttpResponse:
    """How the person who is signed in wants to be told."""
    person: Any = request.user
    stored = notice_settings.settings_of(person)
    if request.method != "POST":
        wished = [kind for kind in NoticeKind if kind not in stored.muted]
        wishes = Wishes(
            person.email, stored.email, wished, _clock(stored.quiet_from), _clock(stored.quiet_until), stored.time_zone
        )
        return _settings_page(request, wishes, {}, saved="saved" in request.GET)
    sent = request.POST
    wishes = Wishes(
        address=sent.get("address", "").strip(),
        email=sent.get("email") == "1",
        kinds=sent.getlist("kinds"),
        quiet_from=sent.get("quiet_from", "").strip(),
        quiet_until=sent.get("quiet_until", "").strip(),
        time_zone=sent.get("time_zone", "").strip(),
    )
    try:
        notice_settings.change(wishes, person=person, channel=CHANNEL)
    except SubmissionInvalid as refusal:
        return _settings_page(request, wishes, _faults(refusal))
    return redirect(f"{request.path}?saved")


def _settings_page(
    request: HttpRequest, wishes: Wishes, faults: Mapping[str, str], *, saved: bool = False
) -> HttpResponse:
    kinds = [(kind.value, words, kind in wishes.kinds) for kind, words in KIND_WORDS.items()]
    context = {"wishes": wishes, "kinds": kinds, "faults": faults, "saved": saved}
    return page(request, "notice_settings.html", "whole", context, status=INVALID if faults else 200, seen="")


@require_http_methods(["POST", "GET", "HEAD"])
def channels(request: HttpRequest) -> HttpResponse:
    """Where teams are told, and a form for one more."""
    sent = request.POST
    described = NewChannel(
        name=sent.get("name", "").strip(),
        team=sent.get("team", ""),
        format=sent.get("format", ChannelFormat.SLACK.value),
        url=sent.get("url", "").strip(),
        secret_name=sent.get("secret_name", "").strip(),
        kinds=sent.getlist("kinds"),
    )
    if request.method != "POST":
        return _channels_page(request, described, {})
    try:
        notice_channels.add(described, person=request.user, channel=CHANNEL)  # type: ignore[arg-type]
    except SubmissionInvalid as refusal:
        return _channels_page(request, described, _faults(refusal))
    return redirect("notice_channels")


@require_http_methods(["POST"])
def channel_switch(request: HttpRequest, channel_id: UUID) -> HttpResponse:
    """Switches a channel on or off."""
    on = request.POST.get("enabled") == "1"
    notice_channels.switch(channel_id, enabled=on, person=request.user, channel=CHANNEL)  # type: ignore[arg-type]
    return redirect("notice_channels")


def _channels_page(request: HttpRequest, described: NewChannel, faults: Mapping[str, str]) -> HttpResponse:
    found = [(channel, notice_channels.host_of(channel)) for channel in notice_channels.channels(request.user)]
    chosen = described.kinds if request.method == "POST" else [NoticeKind.ASKED, NoticeKind.ESCALATION]
    context = {
        "channels": found,
        "described": described,
        "faults": faults,
        "kinds": [(kind.value, kind in chosen) for kind in NoticeKind],
        "formats": list(ChannelFormat),
        "teams": teams_visible_to(request.user),
    }
    return page(request, "notice_channels.html", "whole", context, status=INVALID if faults else 200, seen="")


def _faults(refusal: SubmissionInvalid) -> dict[str, str]:
    """What is wrong, by the field's name."""
    return {fault.path.lstrip("/"): fault.message for fault in refusal.faults}


def _clock(at: Any) -> str:
    return f"{at:%H:%M}" if at else ""
