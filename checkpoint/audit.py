"""The sole writer of the audit trail: hash-chained per stream, in the transaction of the change itself.

An entry's hash is SHA-256 over its stored text, and the text names the previous hash; so a verifier needs nothing but
the texts, in order, and a SHA-256 function.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson
from django.db import connection

from checkpoint import clock, occasions
from checkpoint.people import Actor
from checkpoint.rows import statements
from checkpoint.transactions import require_transaction

if TYPE_CHECKING:
    from checkpoint.models import AuditEntry, AuditStream

SYSTEM_STREAM = uuid.UUID("00000000-0000-8000-8000-000000000001")
FIRST_HASH = "0" * 64


@dataclass(frozen=True)
class Entry:
    """One change, before it has a place in the chain.

    Attributes:
        stream: id of the stream; a workflow's stream has the workflow's id.
        verb: what was done, one word ("start", "commit", "decide").
        subject: what it was done to ("step charge_card", "case …").
        before: the state before, empty where there is none.
        after: the state after, empty where there is none.
        reason: why, in the actor's words or the engine's.
        details: further JSON values: fence, attempt, versions.
    """

    stream: uuid.UUID
    actor: Actor
    verb: str
    subject: str
    before: str = ""
    after: str = ""
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Head:
    id: uuid.UUID
    last_seq: int
    last_hash: str


@dataclass(frozen=True, slots=True)
class _Link:
    stream_id: uuid.UUID
    seq: int
    at: datetime
    actor: str
    channel: str
    verb: str
    text: str
    hash: str


_LOCK_HEADS = """
SELECT id, last_seq, last_hash FROM checkpoint_auditstream WHERE id = ANY(%(streams)s) ORDER BY id FOR UPDATE
"""
_COLUMNS = ", ".join(_Link.__slots__)
_APPEND = f"""
INSERT INTO checkpoint_auditentry ({_COLUMNS}) SELECT {_COLUMNS} FROM json_to_recordset(%(links)s) AS link(
  stream_id uuid, seq bigint, at timestamptz, actor text, channel text, verb text, text text, hash text)
"""
_STORE_HEADS = """
UPDATE checkpoint_auditstream AS stream SET last_seq = head.last_seq, last_hash = head.last_hash
FROM json_to_recordset(%(heads)s) AS head(id uuid, last_seq bigint, last_hash text) WHERE stream.id = head.id
"""


def append(entries: Sequence[Entry], *, at: datetime) -> None:
    """Appends the entries to their chains, in the given order. `at` is database time."""
    require_transaction()
    if not entries:
        return
    heads = _lock_heads({entry.stream for entry in entries})
    occasion = {"request": occasions.request_id(), "traceparent": occasions.trace()}
    links = [_link(entry, heads[entry.stream], at, occasion) for entry in entries]
    statements.change(_APPEND, links=statements.rows(links))
    statements.change(_STORE_HEADS, heads=statements.rows(list(heads.values())))


def append_to_system(entries: Sequence[Entry]) -> None:
    """Appends entries of the system's stream, which exists from the first one on."""
    open_streams([(SYSTEM_STREAM, "system")])
    _lock_heads({SYSTEM_STREAM})  # time is read after the lock, so that it follows the order of the chain
    append(entries, at=clock.now())


def open_streams(streams: Iterable[tuple[uuid.UUID, str]]) -> None:
    """Creates the heads of new streams, given as (id, name). Streams that exist stay as they are."""
    require_transaction()
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO checkpoint_auditstream (id, name, last_seq, last_hash) VALUES (%s, %s, 0, %s)"
            " ON CONFLICT DO NOTHING",
            [(stream, name, FIRST_HASH) for stream, name in streams],
        )


def workflow_stream(workflow_id: uuid.UUID) -> tuple[uuid.UUID, str]:
    """Id and name of a workflow's stream."""
    return workflow_id, f"workflow/{workflow_id}"


def entry_hash(text: str) -> str:
    """The hash of one stored entry."""
    return hashlib.sha256(text.encode()).hexdigest()


def _lock_heads(streams: set[uuid.UUID]) -> dict[uuid.UUID, _Head]:
    return {head[0]: _Head(*head) for head in statements.fetch(_LOCK_HEADS, streams=list(streams))}


def _link(entry: Entry, head: _Head, at: datetime, occasion: dict[str, str]) -> _Link:
    head.last_seq += 1
    text = _text(entry, head, at, occasion)
    head.last_hash = entry_hash(text)
    return _Link(
        entry.stream, head.last_seq, at, entry.actor.name, entry.actor.channel, entry.verb, text, head.last_hash
    )


def _text(entry: Entry, head: _Head, at: datetime, occasion: dict[str, str]) -> str:
    content: dict[str, Any] = {
        "stream": entry.stream,
        "seq": head.last_seq,
        "previous": head.last_hash,
        "at": at,
        "actor": entry.actor.name,
        "channel": entry.actor.channel,
        "verb": entry.verb,
        "subject": entry.subject,
    }
    optional: dict[str, Any] = {"before": entry.before, "after": entry.after, "reason": entry.reason}
    optional |= {"details": entry.details, **occasion}
    content |= {name: value for name, value in optional.items() if value}
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()


@dataclass(frozen=True)
class BrokenLink:
    """The first entry of a stream that does not follow from the one before it."""

    stream: str
    seq: int
    problem: str


def broken_links() -> Iterator[BrokenLink]:
    """Walks every stream and yields the first broken link of each stream that has one, then streams without a head."""
    from checkpoint.models import AuditStream

    for stream in AuditStream.objects.order_by("name").iterator():
        problem = _first_problem(stream)
        if problem is not None:
            yield BrokenLink(stream.name, *problem)
    for stream_id in statements.fetch(_HEADLESS):
        yield BrokenLink(str(stream_id[0]), 0, "the head of its chain is missing")


# Every workflow has a stream from its submission on.
_HEADLESS = """
SELECT named.id FROM (SELECT id FROM checkpoint_workflow UNION SELECT stream_id FROM checkpoint_auditentry) AS named
WHERE NOT EXISTS (SELECT FROM checkpoint_auditstream AS stream WHERE stream.id = named.id) ORDER BY named.id
"""


def _first_problem(stream: AuditStream) -> tuple[int, str] | None:
    """Reads on, and the head again, while others append to the stream meanwhile."""
    seq, previous, walked_to = 0, FIRST_HASH, -1
    while seq > walked_to:
        walked_to = seq
        for entry in stream.entries.filter(seq__gt=walked_to).order_by("seq").iterator():
            seq += 1
            problem = _problem(entry, seq, previous)
            if problem:
                return seq, problem
            previous = entry.hash
        if (seq, previous) == (stream.last_seq, stream.last_hash):
            return None
        stream.refresh_from_db()
    return seq + 1, f"the chain ends at {seq}, its head says {stream.last_seq}"


def _problem(entry: AuditEntry, seq: int, previous: str) -> str:
    if entry.seq != seq:
        return f"entry {seq} is missing"
    if entry_hash(entry.text) != entry.hash:
        return "the text does not match its hash"
    content = _read(entry.text)
    place = {"stream": str(entry.stream_id), "seq": seq, "previous": previous}
    if place.items() - content.items():
        return "the text does not follow the entry before it"
    if {"actor": entry.actor, "channel": entry.channel, "verb": entry.verb, "at": entry.at}.items() - content.items():
        return "what it is searched by is not what the text says"
    return ""


def _read(text: str) -> dict[str, Any]:
    """The members of an entry that a check compares; those that cannot be read are left out."""
    try:
        content = json.loads(text)
        members = {name: content[name] for name in ("stream", "seq", "previous", "actor", "channel", "verb")}
        return members | {"at": datetime.fromisoformat(content["at"])}
    except (ValueError, TypeError, LookupError):
        return {}
