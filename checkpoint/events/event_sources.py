"""What happened, as events that can be followed: the audit entries of one workflow or of some teams' workflows.

Each event has a place, from which a reader goes on. In a workflow it is the number of the entry, which has no gaps.
Among the workflows of teams it is a time, and there a transaction that is still open may yet write an entry that is
older than one that is there. So nothing is read past the horizon: the time before which no open transaction can write.

An event says what was done to what, never why or with which facts: that may be a tool's or a stranger's text.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from checkpoint.errors import FilterInvalid
from checkpoint.rows import statements
from checkpoint.trail.audit_search import Place

AT_ONCE = 200  # events
OLDEST_PLACE = timedelta(days=7)
_LOOKED_THROUGH = timedelta(hours=1)  # of the audit of all teams, in one reading
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Event:
    """One audit entry of a workflow.

    Attributes:
        place: where a reader goes on behind this event.
        before: the state before, empty where there is none; `after` likewise.
    """

    place: str
    workflow_id: UUID
    seq: int
    at: datetime
    actor: str
    verb: str
    subject: str
    before: str
    after: str


@dataclass(frozen=True)
class Batch:
    """What one reading found.

    Attributes:
        place: where the next reading begins.
        more: whether there is more to read at once.
    """

    events: list[Event]
    place: str
    more: bool = False


class Source(Protocol):
    """Something that can be followed. `ids` are the workflows or teams whose movement concerns it."""

    ids: frozenset[UUID]

    def first_place(self, after: str) -> str:
        """Where reading begins for who has read up to `after`, or nothing yet. Raises FilterInvalid."""

    def read(self, place: str, until: datetime) -> Batch:
        """The next events behind the place, none from `until` on where the source reads by time."""


_HORIZON = """
SELECT checkpoint_now() - (clock_timestamp() - least(statement_timestamp(), min(xact_start)))
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND (backend_xid IS NOT NULL OR xact_start > statement_timestamp() - interval '10 seconds')
"""
_MOVED = """
SELECT DISTINCT workflow.id, workflow.team_id
FROM checkpoint_auditentry AS entry JOIN checkpoint_workflow AS workflow ON workflow.id = entry.stream_id
WHERE entry.at >= %(since)s AND entry.at < %(until)s
  AND (workflow.id = ANY(%(ids)s) OR workflow.team_id = ANY(%(ids)s))
"""
_OF_WORKFLOW = """
SELECT stream_id, seq, at, text FROM checkpoint_auditentry
WHERE stream_id = %(workflow)s AND seq > %(seq)s ORDER BY seq LIMIT %(limit)s
"""
_OF_TEAMS = """
SELECT entry.stream_id, entry.seq, entry.at, entry.text
FROM checkpoint_auditentry AS entry JOIN checkpoint_workflow AS workflow ON workflow.id = entry.stream_id
WHERE entry.at >= %(at)s AND entry.at < %(until)s
  AND (entry.at, entry.stream_id, entry.seq) > (%(at)s, %(stream)s, %(seq)s) AND workflow.team_id = ANY(%(teams)s)
ORDER BY entry.at, entry.stream_id, entry.seq LIMIT %(limit)s
"""


def horizon() -> datetime:
    """The time before which the audit is complete: whoever may still write began later, and reads the time after that.

    A transaction that has written nothing for ten seconds counts as one that only reads. The two clocks differ in tests
    alone.
    """
    (found,) = statements.fetch(_HORIZON)
    moment: datetime = found[0]
    return moment


def moved(ids: Collection[UUID], since: datetime, until: datetime) -> set[UUID]:
    """Those of the workflows and teams that have entries in that time."""
    pairs = statements.fetch(_MOVED, ids=list(ids), since=since, until=until)
    return {each for pair in pairs for each in pair}


class WorkflowSource:
    """The events of one workflow, from the first one on."""

    def __init__(self, workflow_id: UUID) -> None:
        self.ids = frozenset({workflow_id})
        self._workflow_id = workflow_id

    def first_place(self, after: str) -> str:
        """As `Source.first_place`: the number of the last entry that was read."""
        if after and not (after.isascii() and after.isdecimal() and len(after) < 18):
            raise FilterInvalid("The place is none of this workflow's: send the id of the last event as it came.")
        return after or "0"

    def read(self, place: str, until: datetime) -> Batch:
        """As `Source.read`; entries of one workflow are committed in their order, so `until` is of no concern."""
        rows = statements.fetch(_OF_WORKFLOW, workflow=self._workflow_id, seq=int(place), limit=AT_ONCE)
        events = [_event(str(row[1]), *row) for row in rows]
        return Batch(events, events[-1].place if events else place, len(events) == AT_ONCE)


class TeamsSource:
    """The events of all workflows of some teams, from now on or from a place of the last seven days."""

    def __init__(self, teams: Collection[UUID]) -> None:
        self.ids = frozenset(teams)

    def first_place(self, after: str) -> str:
        """As `Source.first_place`."""
        now = horizon()
        place = Place.read(after) if after else Place(now, _FIRST, 0)
        if place is None or not -(2**63) < place.seq < 2**63:
            raise FilterInvalid("The place is none of these events: send the id of the last event as it came.")
        if place.at < now - OLDEST_PLACE:
            raise FilterInvalid("The place is more than seven days back: begin anew without one, and read the lists.")
        return str(place)

    def read(self, place: str, until: datetime) -> Batch:
        """As `Source.read`. Where little happened an hour is looked through at once, and the place moves on with it."""
        behind = Place.read(place)
        assert behind is not None  # it is one of ours
        end = min(until, behind.at + _LOOKED_THROUGH)
        rows = statements.fetch(_OF_TEAMS, **vars(behind), until=end, teams=list(self.ids), limit=AT_ONCE)
        events = [_event(str(Place(at, stream, seq)), stream, seq, at, text) for stream, seq, at, text in rows]
        if len(events) == AT_ONCE:
            return Batch(events, events[-1].place, more=True)
        return Batch(events, str(max(behind, Place(end, _FIRST, 0), key=_order)), end < until)


def _order(place: Place) -> tuple[datetime, UUID, int]:
    return place.at, place.stream, place.seq


def _event(place: str, stream: UUID, seq: int, at: datetime, text: str) -> Event:
    content = _members(text)
    told = {name: str(content.get(name, "")) for name in ("actor", "verb", "subject", "before", "after")}
    return Event(place, stream, seq, at, **told)


def _members(text: str) -> dict[str, Any]:
    """Those of the entry; none where its text was damaged."""
    with suppress(ValueError):
        content = json.loads(text)
        return content if isinstance(content, dict) else {}
    return {}
