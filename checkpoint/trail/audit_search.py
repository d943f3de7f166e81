"""Search in the audit: newest first, in pages, over any number of streams.

Ten million rows are ordinary here. So a page is found through an index, nothing is counted, and what no index serves
(words, channel) is looked for among a bounded number of entries; the page says how far back that was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from checkpoint.audit import entry_hash
from checkpoint.errors import NotFound
from checkpoint.models import AuditEntry
from checkpoint.permissions import VIEW_AUDIT, Person, admit
from checkpoint.trail.audit_filter import AuditFilter, served

PAGE_SIZE = 50
LOOKED_THROUGH = 20_000  # entries for one page: about 0.1 s
_LARGEST_SEQ = 2**63 - 1
VERBS_AMONG = 1_000  # newest entries from which verbs are suggested


@dataclass(frozen=True)
class Place:
    """Where in the audit an entry stands; as text it is the cursor of a page."""

    at: datetime
    stream: UUID
    seq: int

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.stream}~{self.seq}"

    @classmethod
    def read(cls, text: str) -> Place | None:
        """The place that `str` wrote; None where the text is anything else."""
        with suppress(ValueError):
            at, stream, seq = text.split("~")
            place = cls(datetime.fromisoformat(at), UUID(stream), int(seq))
            return place if place.at.tzinfo else None
        return None


@dataclass(frozen=True)
class Shown:
    """An entry as it was hashed."""

    row: AuditEntry

    @cached_property
    def content(self) -> dict[str, Any]:
        """The members of its text; none where the text was damaged."""
        with suppress(ValueError):
            content = json.loads(self.row.text)
            return content if isinstance(content, dict) else {}
        return {}

    @property
    def intact(self) -> bool:
        """Whether the text is the one that was hashed."""
        return entry_hash(self.row.text) == self.row.hash

    @property
    def workflow_id(self) -> UUID | None:
        """The workflow whose stream it stands in, if it is one's."""
        return self.row.stream_id if self.row.stream.name.startswith("workflow/") else None

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.row.at, self.row.stream_id, self.row.seq)


@dataclass(frozen=True)
class Found:
    """A page of entries.

    Attributes:
        following: where the next page begins; None on the last one.
        looked_back_to: set where the search ended because it had looked through enough, not because the page is full.
    """

    rows: Sequence[Shown]
    following: Place | None
    looked_back_to: datetime | None = None


def find(person: Person | None, narrowed: AuditFilter, *, before: Place | None = None) -> Found:
    """The newest entries that match, older than `before`. Raises Forbidden."""
    admit(person, VIEW_AUDIT, action="search the audit")
    indexed, rest = served(narrowed)
    entries = AuditEntry.objects.filter(indexed, _behind(narrowed, before)).order_by(*_order(narrowed))
    edge = None
    if rest:
        edge = next(iter(entries.only("at", "stream", "seq")[LOOKED_THROUGH : LOOKED_THROUGH + 1]), None)
        entries = entries.filter(rest)
    if edge is not None:
        entries = entries.filter(_down_to(narrowed, Shown(edge).place))
    rows = [Shown(row) for row in entries.select_related("stream")[: PAGE_SIZE + 1]]
    if len(rows) > PAGE_SIZE:
        return Found(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].place)
    return Found(rows, Shown(edge).place if edge else None, edge.at if edge else None)


def _order(narrowed: AuditFilter) -> tuple[str, ...]:
    """A stream has its own order, and an index for it."""
    return ("-seq",) if narrowed.stream else ("-at", "-stream_id", "-seq")


def _behind(narrowed: AuditFilter, place: Place | None) -> Q:
    if place is None:
        return Q()
    if narrowed.stream:
        return Q(seq__lt=place.seq)
    beside = Q(stream_id__lt=place.stream) | Q(stream_id=place.stream, seq__lt=place.seq)
    return Q(at__lte=place.at) & (Q(at__lt=place.at) | beside)


def _down_to(narrowed: AuditFilter, place: Place) -> Q:
    if narrowed.stream:
        return Q(seq__gte=place.seq)
    return Q(at__gte=place.at) & ~_behind(narrowed, place)


def recent_verbs() -> list[str]:
    """The verbs of the newest entries, to choose from."""
    newest: QuerySet[AuditEntry, str] = AuditEntry.objects.order_by("-at").values_list("verb", flat=True)
    return sorted(set(newest[:VERBS_AMONG]))


@dataclass(frozen=True)
class Neighbours:
    """An entry between those before and after it in its chain."""

    entry: Shown
    before: Shown | None
    after: Shown | None

    @property
    def follows(self) -> bool:
        """Whether the entry names the hash of the one before it."""
        return self.before is None or self.entry.content.get("previous") == self.before.row.hash


def entry(person: Person | None, stream: UUID, seq: int) -> Neighbours:
    """One entry with its neighbours. Raises Forbidden, NotFound."""
    admit(person, VIEW_AUDIT, action="read the audit")
    near = AuditEntry.objects.select_related("stream").filter(stream_id=stream, seq__range=(seq - 1, seq + 1))
    found = {row.seq: Shown(row) for row in near} if seq < _LARGEST_SEQ else {}
    if seq not in found:
        raise NotFound(f"There is no entry {seq} in the stream {stream}.")
    return Neighbours(found[seq], found.get(seq - 1), found.get(seq + 1))
