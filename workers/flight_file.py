"""The file of a flight recorder: one page that says whose it is, then one slot for each call.

A slot is one record with a checksum over its content and over whose file it is. Whatever is cut off in the middle of a
write (SIGKILL comes between two instructions) has a wrong checksum, and so has a slot of another file.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from hashlib import blake2b

import orjson

from checkpoint.canonical import check
from checkpoint.outcomes import Facts, Receipt, Refused
from checkpoint.rows.evidence_log import bounded
from checkpoint.turns.flight_records import FlightRecord, Phase

PAGE = 4096
# Facts of 16 KiB, which is what the record keeps, fit with an operation id and a little room.
SLOT_SIZE = 5 * PAGE

_MAGIC = b"checkpoint flight 1"
_DIGEST = 16
_OWNER = struct.Struct("<20s I 16s 64s")
_HEAD = struct.Struct("<16s q i B I")
_PHASES = {1: Phase.CLAIMED, 2: Phase.SENDING, 3: Phase.ANSWERED}
_CODES = {phase: code for code, phase in _PHASES.items()}

HEAD_SIZE = _DIGEST + _HEAD.size
LARGEST_ANSWER = SLOT_SIZE - HEAD_SIZE
FREE = bytes(HEAD_SIZE)


class Damaged(Exception):
    """It is no record, or not a whole one: it proves nothing."""


@dataclass(frozen=True)
class Owner:
    """Whose file it is. Slots are found with their number, so that is part of it."""

    worker: uuid.UUID
    boot: str
    slots: int

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return PAGE + self.slots * SLOT_SIZE

    def to_page(self) -> bytes:
        """The first page."""
        content = _OWNER.pack(_MAGIC, self.slots, self.worker.bytes, self.boot.encode()[:64])
        return (_digest(content, b"") + content).ljust(PAGE, b"\0")

    @classmethod
    def from_page(cls, page: bytes) -> Owner:
        """Reads a first page.

        Raises:
            Damaged: it is none.
        """
        content = page[_DIGEST : _DIGEST + _OWNER.size]
        if len(content) < _OWNER.size or page[:_DIGEST] != _digest(content, b""):
            raise Damaged("no flight recorder's first page")
        magic, slots, worker, boot = _OWNER.unpack(content)
        if magic.rstrip(b"\0") != _MAGIC:
            raise Damaged("a flight recorder of another version")
        return cls(uuid.UUID(bytes=worker), boot.rstrip(b"\0").decode(), slots)

    @property
    def mark(self) -> bytes:
        """Goes into the checksum of every slot of the file."""
        return self.to_page()[:_DIGEST]


def offset(slot: int) -> int:
    """Where a slot begins."""
    return PAGE + slot * SLOT_SIZE


def head(mark: bytes, step: uuid.UUID, fence: int, attempt: int, phase: Phase, answer: bytes = b"") -> bytes:
    """The head of a record. Its answer, if it has one, stands behind it and is written before it."""
    content = _HEAD.pack(step.bytes, fence, attempt, _CODES[phase], len(answer))
    return _digest(content + answer, mark) + content


def read(mark: bytes, slot: bytes) -> FlightRecord | None:
    """The record of a slot; None where it is free.

    Raises:
        Damaged: a write was cut off in the middle, or the bytes are not what was written.
    """
    if slot[:HEAD_SIZE] == FREE:
        return None
    content = slot[_DIGEST:HEAD_SIZE]
    step, fence, attempt, code, length = _HEAD.unpack(content)
    answer = slot[HEAD_SIZE : HEAD_SIZE + length]
    if len(answer) != length or code not in _PHASES or slot[:_DIGEST] != _digest(content + answer, mark):
        raise Damaged("a record that is not whole")
    phase = _PHASES[code]
    outcome = _outcome(answer) if phase is Phase.ANSWERED else None
    return FlightRecord(uuid.UUID(bytes=step), fence, attempt, phase, outcome)


def answer_of(outcome: Receipt | Refused) -> bytes | None:
    """An answer as a slot keeps it: what the record would keep of it; None where that cannot be."""
    try:
        answer = _answer(outcome)
    except TypeError:
        return None
    return answer if len(answer) <= LARGEST_ANSWER else None


def _answer(outcome: Receipt | Refused) -> bytes:
    if isinstance(outcome, Refused):
        return orjson.dumps({name: getattr(outcome, name) for name in _REFUSAL})
    answer = _receipt(outcome.operation_id, outcome.facts)
    return answer if len(answer) <= LARGEST_ANSWER else _receipt(outcome.operation_id, bounded(outcome.facts))


_REFUSAL = ("message", "code", "retry_after", "permanent")


def _receipt(operation_id: str | None, facts: Facts) -> bytes:
    return orjson.dumps({"operation_id": operation_id and operation_id[:255], "facts": facts})


def _outcome(answer: bytes) -> Receipt | Refused:
    try:
        kept = orjson.loads(answer)
        check(kept)
        return Receipt(**kept) if "facts" in kept else Refused(**kept)
    except (ValueError, TypeError) as error:
        raise Damaged(f"an answer that cannot be read: {error}") from error


def _digest(content: bytes, mark: bytes) -> bytes:
    return blake2b(mark + content, digest_size=_DIGEST).digest()
