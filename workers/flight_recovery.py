"""Reads the flight recorders of dead processes on this host and tells the journal what they say.

Only who gets a file's lock reads it: then its writer is dead. A paused writer keeps the lock and proves nothing. Only
records of this boot count, because what a reboot left on the disk may be older than what was in memory.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.db import InterfaceError, OperationalError

from checkpoint.turns import flight_records
from checkpoint.turns.flight_records import FlightRecord
from workers import flight_file
from workers.boot import boot_id
from workers.flight_file import Damaged, Owner
from workers.flight_recorder import SUFFIX, folder

log = logging.getLogger(__name__)

# One process of a host looks this often; it makes no difference which.
LOOK_SECONDS = 0.4
# Nobody asks any more for what a file tells that belongs to another boot, or to a database that is not this one's.
KEEP_SECONDS = 24 * 3600.0
LARGEST_FILE = 256 * 1024 * 1024


def tell_of_the_dead_now_and_then() -> None:
    """`tell_of_the_dead`, unless a process of this host has done it just now."""
    if _my_turn():
        tell_of_the_dead()


def tell_of_the_dead() -> None:
    """Tells what the dead of this host were doing, and takes away the files that have told it."""
    for file in folder().glob(f"*{SUFFIX}"):
        try:
            with _locked(file) as descriptor:
                if descriptor is not None and _told(file, descriptor):
                    file.unlink(missing_ok=True)
        except FileNotFoundError:
            continue  # somebody else has told it in this moment
        except OSError as error:
            log.warning("the flight recorder %s cannot be read: %s", file.name, error)


def read(descriptor: int) -> tuple[Owner, list[FlightRecord]]:
    """What a file says; a slot that is not whole says nothing.

    Raises:
        Damaged: it is no flight recorder's file.
    """
    owner = Owner.from_page(os.pread(descriptor, flight_file.PAGE, 0))
    if owner.size > LARGEST_FILE:
        raise Damaged("a flight recorder larger than any")
    return owner, [record for number in range(owner.slots) if (record := _record(descriptor, owner, number))]


def _record(descriptor: int, owner: Owner, number: int) -> FlightRecord | None:
    try:
        return flight_file.read(owner.mark, os.pread(descriptor, flight_file.SLOT_SIZE, flight_file.offset(number)))
    except Damaged as damage:
        log.warning("slot %d of worker %s proves nothing: %s", number, owner.worker, damage)
        return None


def _told(file: Path, descriptor: int) -> bool:
    """Whether the file has nothing more to tell."""
    stale = time.time() - os.fstat(descriptor).st_mtime > KEEP_SECONDS
    try:
        owner, records = read(descriptor)
    except Damaged as damage:
        log.warning("the flight recorder %s proves nothing: %s", file.name, damage)
        return stale
    if owner.boot != boot_id() or file.name != f"{owner.worker}{SUFFIX}":
        return stale
    return _tell(owner, records) or stale


def _tell(owner: Owner, records: Sequence[FlightRecord]) -> bool:
    """Tells the set; one that fails is bisected, so that one bad record keeps no other from being heard."""
    try:
        return flight_records.hear(owner.worker, records)
    except (OperationalError, InterfaceError):
        raise  # the database is away, and the file can wait
    except Exception:
        if len(records) <= 1:
            log.exception("a flight record of worker %s cannot be used: %s", owner.worker, records)
            return True
        half = len(records) // 2
        return all([_tell(owner, records[:half]), _tell(owner, records[half:])])


@contextmanager
def _locked(file: Path) -> Iterator[int | None]:
    """The file under a lock that its writer, and nobody else, would refuse; None while the writer lives."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield descriptor if _lock(descriptor) else None
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _my_turn() -> bool:
    """Whether nobody of this host has looked just now."""
    looked = folder() / "looked"
    try:
        if abs(time.time() - looked.stat().st_mtime) < LOOK_SECONDS:
            return False
    except FileNotFoundError:
        if not folder().is_dir():
            return False
    looked.touch(mode=0o600)
    return True
