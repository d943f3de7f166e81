"""Anchors: signed statements of how far every audit chain had come, so that a chain whose tail was cut is noticed.

A chain alone cannot say that: without its last entries and with its head turned back it is a shorter, intact chain. An
anchor names the heads of the streams that changed since the one before, and the hash of the one before. So the newest
anchor stands for all of them; a copy of it elsewhere is proof even against whoever owns this database and the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import batched
from uuid import UUID

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from checkpoint.audit import FIRST_HASH, entry_hash
from checkpoint.models import AuditAnchor
from checkpoint.rows import statements
from checkpoint.trail import anchor_key
from checkpoint.transactions import one_transaction

# A filtered export carries the whole list of each anchor that it needs, so lists are short; and so are transactions.
HEADS_PER_ANCHOR = 1_000
HEADS_PER_TRANSACTION = 20_000

type Head = tuple[UUID | str, int, str]
"""A stream's id, and the number and the hash of its last entry."""


@dataclass(frozen=True)
class Anchored:
    """What one transaction stated.

    Attributes:
        anchors: how many were written; none where no stream has changed.
        streams: how many streams they name.
        more: whether further streams wait for the next transaction.
    """

    anchors: int
    streams: int
    more: bool


# One signs at a time, or two anchors would follow the same one.
_LOCK = "SELECT pg_advisory_xact_lock(1634624367, 1)"

# What is written from now on is younger than the oldest open transaction, and a minute is for clocks that are set back.
_SETTLED_UNTIL = """
SELECT checkpoint_now(),
  checkpoint_now() - interval '1 minute' - coalesce(max(clock_timestamp() - xact_start), interval '0')
FROM pg_stat_activity WHERE datname = current_database()
"""
_NEW_HEADS = """
SELECT id, last_seq, last_hash FROM checkpoint_auditstream AS stream
WHERE last_seq > 0 {changed} AND NOT EXISTS (
  SELECT FROM checkpoint_anchoredhead AS head WHERE head.stream_id = stream.id AND head.seq = stream.last_seq)
ORDER BY id LIMIT %(most)s
"""
_CHANGED = "AND id IN (SELECT stream_id FROM checkpoint_auditentry WHERE at >= %(since)s)"

_STORE_HEADS = """
INSERT INTO checkpoint_anchoredhead (stream_id, seq, hash, anchor_id)
SELECT stream_id, seq, hash, %(anchor)s FROM json_to_recordset(%(heads)s)
  AS head(stream_id uuid, seq bigint, hash text)
"""


@one_transaction
def anchor() -> Anchored:
    """Signs the heads of the streams that changed since the newest anchor. Raises AnchorKeyUnusable."""
    key = anchor_key.load()
    statements.fetch(_LOCK)
    before = newest()
    # Asked before the heads are read: a transaction that this does not count is one that they show.
    now, settled_until = statements.fetch(_SETTLED_UNTIL)[0]
    heads, more = _new_heads(before)
    left_open = before.covers_until if before else None
    covers_until = left_open if more else settled_until
    anchors = 0
    for some in batched(heads, HEADS_PER_ANCHOR):
        before = _store(some, before, key, now, covers_until)
        anchors += 1
    return Anchored(anchors, len(heads), more)


def newest() -> AuditAnchor | None:
    """The last anchor."""
    return AuditAnchor.objects.order_by("-number").first()


def _new_heads(before: AuditAnchor | None) -> tuple[Sequence[Head], bool]:
    """Heads that no anchor names yet, in the order of their ids, and whether there are more."""
    since = before.covers_until if before else None
    found: list[Head] = statements.fetch(
        _NEW_HEADS.format(changed=_CHANGED if since else ""), since=since, most=HEADS_PER_TRANSACTION + 1
    )
    return found[:HEADS_PER_TRANSACTION], len(found) > HEADS_PER_TRANSACTION


def _store(
    heads: Sequence[Head],
    before: AuditAnchor | None,
    key: Ed25519PrivateKey,
    now: datetime,
    covers_until: datetime | None,
) -> AuditAnchor:
    number = before.number + 1 if before else 1
    content = {
        "anchor": number,
        "at": now,
        "heads": heads_hash(heads),
        "key": anchor_key.public_text(key),
        "previous": before.hash if before else FIRST_HASH,
        "streams": len(heads),
    }
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()
    made = AuditAnchor.objects.create(
        number=number,
        at=now,
        text=text,
        hash=entry_hash(text),
        signature=key.sign(text.encode()).hex(),
        covers_until=covers_until,
    )
    rows = [{"stream_id": stream, "seq": seq, "hash": hash_} for stream, seq, hash_ in heads]
    statements.change(_STORE_HEADS, anchor=number, heads=statements.rows(rows))
    return made


def heads_hash(heads: Iterable[Head]) -> str:
    """SHA-256 over one line for each head, "STREAM SEQ HASH\\n", in the order of the stream's ids."""
    digest = hashlib.sha256()
    for stream, seq, hash_ in heads:
        digest.update(f"{stream} {seq} {hash_}\n".encode())
    return digest.hexdigest()
