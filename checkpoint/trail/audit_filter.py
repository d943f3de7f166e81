"""What the audit can be narrowed to, on a page, in an export and on the command line alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from uuid import UUID

from django.db.models import Q

from checkpoint.audit import SYSTEM_STREAM
from checkpoint.errors import FilterInvalid
from checkpoint.models.audit import NOT_BY_ENGINE
from checkpoint.people import ENGINE

PEOPLE, MACHINE = "people", "engine"
SYSTEM = "system"


@dataclass(frozen=True)
class AuditFilter:
    """What the audit is narrowed to; empty members narrow nothing.

    Attributes:
        who: PEOPLE or MACHINE.
        actor: a name, as it was when it acted.
        words: part of the exact text, in any case: a subject, an id, a reason.
        since: the earliest time, itself included.
        until: the first time that is not included.
    """

    who: str = ""
    actor: str = ""
    verb: str = ""
    channel: str = ""
    stream: UUID | None = None
    words: str = ""
    since: datetime | None = None
    until: datetime | None = None


def read_filter(given: Mapping[str, str]) -> AuditFilter:
    """The filter in a form's fields or a command's options, which have the names of its members.

    Raises FilterInvalid.
    """
    text = {field.name: given.get(field.name, "").replace("\0", "").strip() for field in fields(AuditFilter)}
    faults: list[str] = []
    stream = _stream(text.pop("stream"), faults)
    since, until = (_time(name, text.pop(name), faults) for name in ("since", "until"))
    if text["who"] not in {"", PEOPLE, MACHINE}:
        faults.append(f"who: choose {PEOPLE} or {MACHINE}.")
    if faults:
        raise FilterInvalid(" ".join(faults))
    return AuditFilter(**text, stream=stream, since=since, until=until)


def _stream(text: str, faults: list[str]) -> UUID | None:
    if not text:
        return None
    with suppress(ValueError):
        return SYSTEM_STREAM if text == SYSTEM else UUID(text)
    faults.append(f"stream: {text[:60]!r} is none; give a workflow's whole id, or {SYSTEM}.")
    return None


def _time(name: str, text: str, faults: list[str]) -> datetime | None:
    """Without an offset a time is UTC."""
    if not text:
        return None
    with suppress(ValueError):
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    faults.append(f"{name}: {text[:60]!r} is no time; write it as 2026-12-01T09:30, in UTC.")
    return None


def matching(narrowed: AuditFilter) -> Q:
    """All that the filter asks for."""
    return _all(_conditions(narrowed).values())


def served(narrowed: AuditFilter) -> tuple[Q, Q]:
    """What an index serves, and what has to be looked at in each row."""
    asked = _conditions(narrowed)
    indexed = ("stream",) if narrowed.stream else ("since", "until", _sharpest(narrowed))
    return _all(asked.pop(name) for name in indexed if name in asked), _all(asked.values())


def _sharpest(narrowed: AuditFilter) -> str:
    """Of the conditions with an index of their own, the one that leaves the fewest entries."""
    if narrowed.actor and narrowed.actor != ENGINE.name:
        return "actor"
    return "who" if narrowed.who == PEOPLE else "verb"


def _conditions(narrowed: AuditFilter) -> dict[str, Q]:
    who = {PEOPLE: NOT_BY_ENGINE, MACHINE: ~NOT_BY_ENGINE}
    asked = {
        "stream": Q(stream_id=narrowed.stream),
        "since": Q(at__gte=narrowed.since),
        "until": Q(at__lt=narrowed.until),
        "actor": Q(actor=narrowed.actor),
        "who": who.get(narrowed.who, Q()),
        "verb": Q(verb=narrowed.verb),
        "channel": Q(channel=narrowed.channel),
        "words": Q(text__icontains=json.dumps(narrowed.words, ensure_ascii=False)[1:-1]),
    }
    return {name: condition for name, condition in asked.items() if getattr(narrowed, name)}


def _all(conditions: Iterable[Q]) -> Q:
    joined = Q()
    for condition in conditions:
        joined &= condition
    return joined
