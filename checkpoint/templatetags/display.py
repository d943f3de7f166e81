"""Filters and tags for pages: hostile text, JSON, states, times, ids. Nothing here reads the database."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from uuid import UUID

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from checkpoint.explaining import hostile_text
from checkpoint.explaining.step_counts import WAIVED
from checkpoint.models import Ending
from checkpoint.states import ApprovalStatus, CaseStatus, Decision, Standing, StepStatus, WorkflowStatus

register = template.Library()

DEEPEST_INDENT = 12
_MEMBER = re.compile(r'"(?:[^"\\]|\\.)*"(?=:)')

# Tone and sign of each state: the colour is never the only difference, and the word always stands beside the sign.
_SIGNS: dict[str, tuple[str, str]] = {
    StepStatus.PLANNED: ("idle", "○"),
    StepStatus.PREPARED: ("idle", "◌"),
    StepStatus.STARTED: ("busy", "▶"),
    StepStatus.COMMITTED: ("busy", "◆"),
    StepStatus.VERIFIED: ("good", "✓"),
    StepStatus.FAILED: ("bad", "✕"),
    StepStatus.UNCERTAIN: ("ask", "?"),
    StepStatus.ABANDONED: ("idle", "■"),
    WAIVED: ("idle", "⊘"),
    WorkflowStatus.AWAITING_APPROVAL: ("ask", "?"),
    WorkflowStatus.EXECUTING: ("busy", "▶"),
    WorkflowStatus.VERIFYING: ("busy", "◆"),
    WorkflowStatus.AWAITING_AGENT: ("ask", "…"),
    WorkflowStatus.FAILED_RETRYABLE: ("bad", "✕"),
    WorkflowStatus.NEEDS_REVIEW: ("ask", "?"),
    WorkflowStatus.COMPLETED: ("good", "✓"),
    CaseStatus.OPEN: ("ask", "?"),
    CaseStatus.DECIDED: ("good", "✓"),
    CaseStatus.SETTLED: ("good", "✓"),
    ApprovalStatus.PENDING: ("ask", "?"),
    ApprovalStatus.APPROVED: ("good", "✓"),
    ApprovalStatus.CONSUMED: ("good", "✓"),
    ApprovalStatus.REJECTED: ("bad", "✕"),
    ApprovalStatus.RETURNED: ("ask", "↩"),
    Decision.REQUEST_CHANGES: ("ask", "↩"),
    Decision.APPROVE: ("good", "✓"),
    Decision.REJECT: ("bad", "✕"),
    # Of bulk jobs, which the core does not know.
    "draft": ("idle", "○"),
    "running": ("busy", "▶"),
    "done": ("good", "✓"),
    "aborted": ("idle", "■"),
    "moved": ("idle", "→"),
    Standing.RECEIPT_ONLY: ("ask", "◔"),
    Standing.ATTESTED: ("ask", "✍"),
    Standing.UNTRUSTED: ("bad", "!"),
    Ending.RECEIPT: ("good", "✓"),
    Ending.REFUSED: ("bad", "✕"),
    Ending.UNKNOWN: ("ask", "?"),
    Ending.LOST: ("ask", "?"),
    # Of notices, which the core does not know.
    "sending": ("busy", "▶"),
    "delivered": ("good", "✓"),
}


@register.filter
def visible(text: Any) -> SafeString:
    """The text with hidden characters written as their codes. Put it inside <bdi>."""
    return hostile_text.visible(str(text))


@register.filter
def plain(text: Any) -> str:
    """As `visible`, without markup: for titles and attributes."""
    return hostile_text.plain(str(text))


@register.filter
def preview(text: Any, length: int) -> SafeString:
    """As `visible`, cut to a length."""
    return hostile_text.preview(str(text), length)


@register.filter
def words(code: Any) -> str:
    """A code name as words: needs_review, "needs review"."""
    return str(code).replace("_", " ")


@register.filter
def tail(identifier: UUID | str) -> str:
    """The end of an id, by which people name it; UUIDs made together begin alike."""
    return str(identifier)[-8:]


@register.filter
def as_time(text: str) -> datetime:
    """The time that an audit entry's text holds."""
    return datetime.fromisoformat(text)


@register.filter
def get(mapping: dict[Any, Any], key: Any) -> Any:
    """The mapping's value, or None."""
    return mapping.get(key)


@register.simple_tag
def state(code: str) -> SafeString:
    """A state, standing or ending as a sign and a word."""
    tone, sign = _SIGNS.get(code, ("idle", "·"))
    return format_html('<span class="state {}"><span aria-hidden="true">{}</span> {}</span>', tone, sign, words(code))


@register.simple_tag
def json_text(text: str) -> SafeString:
    """JSON text whole and exact: the line breaks are drawn, not inserted, so a copy of it is the same bytes."""
    lines = ((min(depth, DEEPEST_INDENT), _line(line)) for depth, line in hostile_text.json_lines(text))
    return format_html('<code class="json">{}</code>', format_html_join("", '<span class="d{}">{}</span>', lines))


def _line(line: str) -> SafeString:
    member = _MEMBER.match(line)
    if member is None:
        return hostile_text.visible(line)
    return format_html("<b>{}</b>{}", hostile_text.visible(member.group()), hostile_text.visible(line[member.end() :]))


@register.simple_tag
def moment(at: datetime | None, *, exact: bool = False) -> SafeString:
    """A time as its distance from now; the exact time in the title, or beside it with `exact`."""
    if at is None:
        return SafeString("-")
    precise = at.astimezone(timezone.get_default_timezone()).strftime("%Y-%m-%d %H:%M:%S %Z")
    shown = distance((timezone.now() - at).total_seconds())
    pattern = '<time datetime="{0}" title="{1}">{2}</time>'
    if exact:
        pattern = '<time datetime="{0}">{2} <span class="exact">{1}</span></time>'
    return format_html(pattern, at.isoformat(), precise, shown)


@register.filter
def lasting(seconds: float) -> str:
    """How long something took, in the two largest units that it has."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    size, unit, smaller, part = next(each for each in _LONG_UNITS if seconds >= each[0])
    rest = int(seconds % size // smaller)
    return f"{int(seconds // size)} {unit}" + (f" {rest} {part}" if rest else "")


_LONG_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def distance(seconds: float) -> str:
    """Seconds in the past (or future, when negative) in the largest unit that fits."""
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(seconds) >= size), (1, ""))
    if not unit:
        return "now"
    amount = f"{int(abs(seconds) // size)} {unit}"
    return f"{amount} ago" if seconds > 0 else f"in {amount}"
