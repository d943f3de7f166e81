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
from typing import Any

from django.db import connection

from checkpoint.people import Actor
from checkpoint.transactions import require_transaction

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


@dataclass
class _Head:
    seq: int
    hash: str


def append(entries: Sequence[Entry], *, at: datetime) -> None:
    """Appends the entries to their chains, in the given order. `at` is database time."""
    require_transaction()
    if not entries:
        return
    heads = _lock_heads({entry.stream for entry in entries})
    links = [_link(entry, heads[entry.stream], at) for entry in entries]
    _insert(links, at)
    _store_heads(heads)


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
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, last_seq, last_hash FROM checkpoint_auditstream WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
            [list(streams)],
        )
        return {stream: _Head(seq, head_hash) for stream, seq, head_hash in cursor.fetchall()}


def _link(entry: Entry, head: _Head, at: datetime) -> tuple[Any, ...]:
    text = json.dumps(_content(entry, head, at), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    head.seq += 1
    head.hash = entry_hash(text)
    return entry.stream, head.seq, entry.actor.name, entry.actor.channel, entry.verb, text, head.hash


def _content(entry: Entry, head: _Head, at: datetime) -> dict[str, Any]:
    content: dict[str, Any] = {
        "stream": str(entry.stream),
        "seq": head.seq + 1,
        "previous": head.hash,
        "at": at.isoformat(),
        "actor": entry.actor.name,
        "channel": entry.actor.channel,
        "verb": entry.verb,
        "subject": entry.subject,
    }
    optional = {"before": entry.before, "after": entry.after, "reason": entry.reason, "details": entry.details}
    return content | {name: value for name, value in optional.items() if value}


def _insert(links: list[tuple[Any, ...]], at: datetime) -> None:
    columns = [list(column) for column in zip(*links, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO checkpoint_auditentry (stream_id, seq, at, actor, channel, verb, text, hash)"
            " SELECT stream, seq, %s, actor, channel, verb, text, hash FROM unnest(%s::uuid[], %s::bigint[],"
            " %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])"
            " AS link(stream, seq, actor, channel, verb, text, hash)",
            [at, *columns],
        )


def _store_heads(heads: dict[uuid.UUID, _Head]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE checkpoint_auditstream SET last_seq = head.seq, last_hash = head.hash"
            " FROM unnest(%s::uuid[], %s::bigint[], %s::text[]) AS head(id, seq, hash)"
            " WHERE checkpoint_auditstream.id = head.id",
            [list(heads), [head.seq for head in heads.values()], [head.hash for head in heads.values()]],
        )


@dataclass(frozen=True)
class BrokenLink:
    """The first entry of a stream that does not follow from the one before it."""

    stream: str
    seq: int
    problem: str


def broken_links() -> Iterator[BrokenLink]:
    """Walks every stream and yields the first broken link of each stream that has one."""
    from checkpoint.models import AuditStream

    for stream in AuditStream.objects.order_by("name").iterator():
        problem = _first_problem(stream.id, stream.last_seq, stream.last_hash)
        if problem is not None:
            yield BrokenLink(stream.name, *problem)


def _first_problem(stream: uuid.UUID, last_seq: int, last_hash: str) -> tuple[int, str] | None:
    from checkpoint.models import AuditEntry

    seq, previous = 0, FIRST_HASH
    for entry in AuditEntry.objects.filter(stream_id=stream).order_by("seq").iterator():
        seq += 1
        problem = _problem(entry.seq, entry.text, entry.hash, seq, previous)
        if problem:
            return seq, problem
        previous = entry.hash
    if (seq, previous) != (last_seq, last_hash):
        return seq + 1, f"the chain ends at {seq}, its head says {last_seq}"
    return None


def _problem(stored_seq: int, text: str, stored_hash: str, seq: int, previous: str) -> str:
    if stored_seq != seq:
        return f"entry {seq} is missing"
    if entry_hash(text) != stored_hash:
        return "the text does not match its hash"
    content = json.loads(text)
    if content["previous"] != previous or content["seq"] != seq:
        return "the text does not follow the entry before it"
    return ""
