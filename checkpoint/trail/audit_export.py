"""Exports of the audit with the proof of its chains: whoever has the file needs nothing else to check it.

A stream is exported whole: of an entry that the filter leaves out, number and hash, so that the chain still verifies.
Before the entries stand the anchors that name the streams' newest signed heads, each with its whole list, so that a
reader knows what to expect. The last record says how many there were, so that half a file is noticed.

Everything is read in short statements, a thousand rows at a time: a reader may take hours, and a transaction that is
open so long would keep the database from cleaning up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import batched
from typing import Any, Literal
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Case, F, Q, TextField, Value, When

from checkpoint import audit, clock
from checkpoint.models import AnchoredHead, AuditAnchor, AuditEntry
from checkpoint.people import Actor
from checkpoint.permissions import VIEW_AUDIT, admit
from checkpoint.trail.audit_filter import AuditFilter, matching
from checkpoint.transactions import one_transaction

FORM = "checkpoint-audit/1"
_ROWS = 1_000
_STREAMS = 500

Kind = Literal["export", "anchor", "head", "entry", "left_out", "end"]


@dataclass(frozen=True)
class Record:
    """One line of an export. `values` has the members that its kind has."""

    kind: Kind
    values: dict[str, Any]


def export(narrowed: AuditFilter, *, person: User | None, actor: Actor) -> Iterator[Record]:
    """All records of an export, which is audited itself. Raises Forbidden, before the first one.

    Args:
        person: whose right it is; None for whoever runs a command on this machine without an account.
        actor: who is named in the audit and in the file.
    """
    admit(person, VIEW_AUDIT, action="export the audit")
    asked = {name: str(value) for name, value in asdict(narrowed).items() if value}
    began = _begin(asked, actor)
    header = {"form": FORM, "at": began.isoformat(), "by": actor.name, "filter": asked}
    # What is sought is older than this export, whose own entry names the words that it seeks.
    return _records(header, matching(narrowed) & Q(at__lt=began) if asked else Q())


@one_transaction
def _begin(asked: dict[str, str], actor: Actor) -> datetime:
    began = clock.now()
    audit.append_to_system(
        [audit.Entry(audit.SYSTEM_STREAM, actor, "export", "audit", details={"filter": asked} if asked else {})]
    )
    return began


def _records(header: dict[str, Any], asked: Q) -> Iterator[Record]:
    counted = dict.fromkeys(("anchor", "head", "entry", "left_out"), 0)
    yield Record("export", header)
    # Only anchors that are there now: a later one may name heads that were appended after their stream was read.
    newest = AuditAnchor.objects.order_by("-number").values_list("number", flat=True).first() or 0
    streams = _streams(asked) if asked else None
    for part in (_anchors(streams, newest), _entries(streams, asked)):
        for record in part:
            counted[record.kind] += 1
            yield record
    yield Record("end", counted)


def _streams(asked: Q) -> Sequence[UUID]:
    """The streams in which something matches, in the order of their ids."""
    entries = AuditEntry.objects.filter(asked)
    return list(entries.order_by("stream_id").values_list("stream_id", flat=True).distinct())


def _anchors(streams: Sequence[UUID] | None, newest: int) -> Iterator[Record]:
    """For each stream the newest anchor that names it; for all streams every anchor. Each with its list of heads."""
    numbers = range(1, newest + 1) if streams is None else sorted(_naming(streams, newest))
    for some in batched(numbers, _STREAMS):
        for found in AuditAnchor.objects.filter(number__in=some).order_by("number"):
            values = {"anchor": found.number, "hash": found.hash, "signature": found.signature, "text": found.text}
            yield Record("anchor", values)
            for stream, seq, hash_ in found.heads.order_by("stream_id").values_list("stream_id", "seq", "hash"):
                yield Record("head", {"anchor": found.number, "stream": str(stream), "seq": seq, "hash": hash_})


def _naming(streams: Sequence[UUID], newest: int) -> set[int]:
    numbers: set[int] = set()
    for some in batched(streams, _STREAMS):
        heads = AnchoredHead.objects.filter(stream_id__in=some, anchor_id__lte=newest)
        newest_of_each = heads.order_by("stream_id", "-seq").distinct("stream_id")
        numbers.update(newest_of_each.values_list("anchor_id", flat=True))
    return numbers


def _entries(streams: Sequence[UUID] | None, asked: Q) -> Iterator[Record]:
    if streams is None:
        yield from _rows(Q(), asked)
        return
    for some in batched(streams, _STREAMS):
        yield from _rows(Q(stream_id__in=some), asked)


def _rows(among: Q, asked: Q) -> Iterator[Record]:
    """Chains in the order of their ids, each from its first entry on; the text only of what was asked for."""
    shown = (
        Case(When(asked, then=F("text")), default=Value(None), output_field=TextField(null=True))
        if asked
        else F("text")
    )
    columns = AuditEntry.objects.filter(among).order_by("stream_id", "seq").annotate(shown=shown)
    rows = list(columns.values_list("stream_id", "seq", "hash", "shown")[:_ROWS])
    while rows:
        for stream, seq, hash_, text in rows:
            values = {"stream": str(stream), "seq": seq, "hash": hash_}
            yield Record("left_out", values) if text is None else Record("entry", {**values, "text": text})
        last = (rows[-1][0], rows[-1][1])
        rows = list(columns.filter(pk__gt=last).values_list("stream_id", "seq", "hash", "shown")[:_ROWS])
