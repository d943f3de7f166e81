"""What a worker process keeps for whoever comes after its SIGKILL: how far each of its calls had come.

One memory-mapped file for each process, below CHECKPOINT_HOME/flight. What was written there is the kernel's, not the
process's, so it outlives the process (not the machine: hence the boot id). The exclusive lock is held for the life of
the process; whoever gets the lock knows that the writer is dead and will never send again.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

from django.conf import settings

from checkpoint.models import Activity
from checkpoint.outcomes import Receipt, Refused
from checkpoint.turns.calls import Claim, Report
from checkpoint.turns.flight_records import Phase
from workers import flight_file
from workers.boot import boot_id

log = logging.getLogger(__name__)

SUFFIX = ".flight"

Held = tuple[uuid.UUID, int]


def folder() -> Path:
    """Where the processes of this host keep their files."""
    return Path(settings.CHECKPOINT_HOME) / "flight"


class Slot:
    """The record of one call. The loop claims and clears it; in between it belongs to one hand."""

    def __init__(self, memory: mmap.mmap, number: int, mark: bytes) -> None:
        self._memory = memory
        self._at = flight_file.offset(number)
        self._mark = mark
        self._phase: Phase | None = None

    def claim(self, claim: Claim) -> None:
        """Notes the call that is about to be claimed."""
        self._of = (claim.step_id, claim.fence, claim.attempt_number)
        self._write(Phase.CLAIMED)

    def sending(self) -> None:
        """From here on a byte may have left. Saying it again changes nothing."""
        if self._phase is Phase.CLAIMED:
            self._write(Phase.SENDING)

    def answered(self, outcome: Receipt | Refused) -> None:
        """The provider has spoken. An answer that does not fit leaves what was noted, which claims less."""
        answer = flight_file.answer_of(outcome)
        if answer is not None and self._phase in (Phase.CLAIMED, Phase.SENDING):
            begin = self._at + flight_file.HEAD_SIZE
            self._memory[begin : begin + len(answer)] = answer
            self._write(Phase.ANSWERED, answer)

    def clear(self) -> None:
        """Nothing is known of any call here."""
        self._memory[self._at : self._at + flight_file.HEAD_SIZE] = flight_file.FREE
        self._phase = None

    def _write(self, phase: Phase, answer: bytes = b"") -> None:
        head = flight_file.head(self._mark, *self._of, phase, answer)
        self._memory[self._at : self._at + len(head)] = head
        self._phase = phase


class FlightRecorder:
    """The slots of one process. Without any it records nothing, and every call that is cut off stays unknown."""

    def __init__(self, slots: Sequence[Slot] = (), file: Path | None = None) -> None:
        self._free = list(slots)
        self._file = file
        self._used: dict[Held, Slot] = {}
        self._unconfirmed: list[Held] = []

    def claim(self, claims: Sequence[Claim]) -> None:
        """Notes what a turn claims, before its commit: a record without a commit speaks of no attempt."""
        self._let_go(self._unconfirmed)
        self._unconfirmed = [_held(claim) for claim in claims if claim.activity is Activity.EXECUTE]
        for claim in claims:
            if claim.activity is Activity.EXECUTE and self._free:
                slot = self._used[_held(claim)] = self._free.pop()
                slot.claim(claim)

    def commit(self, reports: Sequence[Report]) -> None:
        """The turn has committed: its claims stand, and what it recorded needs no record here."""
        self._unconfirmed = []
        self._let_go([_held(report.claim) for report in reports])

    def slot(self, claim: Claim) -> Slot | None:
        """The slot of a claimed call, if it has one."""
        return self._used.get(_held(claim)) if claim.activity is Activity.EXECUTE else None

    def close(self) -> None:
        """Takes the file away, unless it still tells something. The lock goes with the process."""
        if self._file is not None and not self._used:
            self._file.unlink(missing_ok=True)

    def _let_go(self, held: Sequence[Held]) -> None:
        for each in held:
            slot = self._used.pop(each, None)
            if slot is not None:
                slot.clear()
                self._free.append(slot)


def _held(claim: Claim) -> Held:
    return claim.step_id, claim.fence


def start(worker: uuid.UUID, *, hands: int) -> FlightRecorder:
    """This process's recorder. Call it after fork.

    A turn records as many calls as it claims, and a slot is free only after the commit: hence two slots for each hand.
    Where no file can be made the worker goes on without: it will ask more, and do nothing wrong.
    """
    owner = flight_file.Owner(worker, boot_id(), 2 * hands)
    file = folder() / f"{worker}{SUFFIX}"
    try:
        memory = _open(file, owner)
    except OSError as error:
        log.error(
            "no flight recorder: %s. Calls that this worker is killed in become questions to people. "
            "Make %s writable and give it %d KiB, then restart the worker",
            error, folder(), owner.size // 1024,
        )  # fmt: skip
        return FlightRecorder()
    return FlightRecorder([Slot(memory, number, owner.mark) for number in range(owner.slots)], file)


def _open(file: Path, owner: flight_file.Owner) -> mmap.mmap:
    """Makes the file under a name that no reader knows, locks it, and shows it whole.

    Every byte is written once, so that a full disk is noticed now and not at a later write to the mapping, which would
    end the process.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with os.fdopen(os.dup(descriptor), "wb") as writer:
            writer.write(owner.to_page() + bytes(owner.size - flight_file.PAGE))
        os.fsync(descriptor)
        # The mapping keeps a copy of the descriptor, and with it the lock, until the process ends.
        memory = mmap.mmap(descriptor, owner.size)
        draft.rename(file)
        return memory
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
