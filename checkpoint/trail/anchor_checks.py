"""Checks the anchors and, by them, the chains: which stream was cut or rewritten since an anchor named its head."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from checkpoint.audit import FIRST_HASH, entry_hash
from checkpoint.errors import AnchorUnreadable
from checkpoint.models import AuditAnchor
from checkpoint.rows import statements
from checkpoint.trail import anchor_key
from checkpoint.trail.audit_anchors import heads_hash

# The same text as audit_anchors.heads_hash, made where the rows are.
_HEADS_HASHES = """
SELECT anchor_id, count(*),
  encode(sha256(convert_to(string_agg(format(E'%%s %%s %%s\n', stream_id, seq, hash), '' ORDER BY stream_id), 'UTF8')),
    'hex')
FROM checkpoint_anchoredhead GROUP BY anchor_id
"""

_LOST = """
SELECT DISTINCT ON (head.stream_id) coalesce(stream.name, head.stream_id::text), head.seq, head.anchor,
  entry.hash IS NULL
FROM ({heads}) AS head
LEFT JOIN checkpoint_auditentry AS entry ON entry.stream_id = head.stream_id AND entry.seq = head.seq
LEFT JOIN checkpoint_auditstream AS stream ON stream.id = head.stream_id
WHERE entry.hash IS DISTINCT FROM head.hash ORDER BY head.stream_id, head.seq
"""
_STORED_HEADS = "SELECT stream_id, seq, hash, anchor_id AS anchor FROM checkpoint_anchoredhead"
_KEPT_HEADS = """
SELECT stream_id, seq, hash, %(anchor)s::bigint AS anchor FROM json_to_recordset(%(rows)s)
  AS kept(stream_id uuid, seq bigint, hash text)
"""
_UNANCHORED = """
SELECT count(*) FROM checkpoint_auditstream AS stream WHERE last_seq > 0 AND NOT EXISTS (
  SELECT FROM checkpoint_anchoredhead AS head WHERE head.stream_id = stream.id AND head.seq = stream.last_seq)
"""


@dataclass(frozen=True)
class AnchorProblem:
    """What an anchor proves to be wrong: `about` is a stream's name or an anchor."""

    about: str
    problem: str


def problems(*, trusted_key: str = "") -> Iterator[AnchorProblem]:
    """The first stored anchor that does not hold, then each stream that is not what the anchors say.

    Args:
        trusted_key: the only public key (hexadecimal) that may have signed; any without it.
    """
    stated = {number: (count, digest) for number, count, digest in statements.fetch(_HEADS_HASHES)}
    previous = FIRST_HASH
    for number, found in enumerate(AuditAnchor.objects.order_by("number").iterator(), start=1):
        problem = _problem(found, number, previous, trusted_key) or _list_problem(found.text, stated.get(found.number))
        if problem:
            yield AnchorProblem(f"anchor {number}", problem)
            break
        previous = found.hash
    yield from _lost(_STORED_HEADS)


def _problem(found: AuditAnchor, number: int, previous: str, trusted_key: str) -> str:
    if found.number != number:
        return "it is missing"
    content = _content(found.text, found.hash, found.signature)
    if content is None:
        return "its text is not the one that was signed"
    if (content["anchor"], content["previous"]) != (number, previous):
        return "the text does not follow the anchor before it"
    if trusted_key and content["key"] != trusted_key:
        return f"it was signed with the key {content['key']}"
    return ""


def _content(text: str, hash_: str, signature: str) -> dict[str, Any] | None:
    """The members of an anchor's text; None where hash or signature are those of another text."""
    with suppress(ValueError, TypeError, LookupError):
        content: dict[str, Any] = json.loads(text)
        if entry_hash(text) == hash_ and anchor_key.signed_by(content["key"], text, signature):
            return content
    return None


def _list_problem(text: str, stated: tuple[int, str] | None) -> str:
    content = json.loads(text)
    is_signed = (content["streams"], content["heads"]) == stated
    return "" if is_signed else "its list of heads is not the one that was signed"


def kept_anchor_problems(kept: Mapping[str, Any]) -> Iterator[AnchorProblem]:
    """What an anchor that was kept elsewhere (`anchor_audit --output`) proves to be wrong here.

    Raises AnchorUnreadable: it is no anchor, or not as it was signed.
    """
    try:
        content = _content(kept["text"], kept["hash"], kept["signature"])
        heads = [(stream, int(seq), hash_) for stream, seq, hash_ in kept["heads"]]
    except (ValueError, TypeError, LookupError):
        raise AnchorUnreadable("This is no anchor as `anchor_audit --output` writes it.") from None
    if content is None or heads_hash(heads) != content["heads"]:
        raise AnchorUnreadable("This anchor is not as it was signed; it proves nothing.")
    number = content["anchor"]
    here = AuditAnchor.objects.filter(number=number).first()
    if here is None:
        yield AnchorProblem(f"anchor {number}", "it was signed, and is not here any more")
    elif here.hash != kept["hash"]:
        yield AnchorProblem(f"anchor {number}", "another one was signed under this number")
    rows = [{"stream_id": stream, "seq": seq, "hash": hash_} for stream, seq, hash_ in heads]
    yield from _lost(_KEPT_HEADS, anchor=number, rows=statements.rows(rows))


def _lost(heads: str, **parameters: Any) -> Iterator[AnchorProblem]:
    for stream, seq, anchor, is_missing in statements.fetch(_LOST.format(heads=heads), **parameters):
        what = "is missing: its tail was cut" if is_missing else "is another one: it was rewritten"
        yield AnchorProblem(stream, f"anchor {anchor} states entry {seq}, which {what}")


def unanchored() -> int:
    """How many streams have entries that no anchor states yet."""
    count: int = statements.fetch(_UNANCHORED)[0][0]
    return count
