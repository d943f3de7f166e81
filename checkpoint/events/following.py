"""Following events as they happen: many streams, and one thread of each web process that looks for all of them.

The thread asks the database every quarter of a second what moved, outside of any transaction and over one connection of
its own, for as long as anybody follows. Nobody who writes has to notify anyone, which would serialise the commits of
the hot path. A follower that does not take what it was given is given nothing more, so none can fill the memory.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from django.db import Error, connections

from checkpoint.errors import TooManyFollowers
from checkpoint.events import event_sources
from checkpoint.events.event_sources import Batch, Source

log = logging.getLogger(__name__)

TICK = 0.25  # seconds between two looks
STILL_ALIVE_EVERY = 15.0  # seconds after which an empty batch says so, and moves the place on
ADMITTED_EVERY = 5.0  # seconds between two questions whether who follows still may
LONGEST = 900.0  # seconds; then the stream ends, and its reader comes again with its place
MOST, MOST_OF_ONE = 500, 10  # streams in one web process: of everybody, and of one token or person
_AFTER_AN_ERROR = 1.0  # seconds


class Follower:
    """One stream. Everything but `batches` is called by the thread that looks."""

    def __init__(self, source: Source, place: str, owner: Hashable, admitted: Callable[[], bool]) -> None:
        now = time.monotonic()
        self.source, self.owner = source, owner
        self._place, self._admitted = place, admitted
        self._ends_at, self._asks_at, self._speaks_at = now + LONGEST, now + ADMITTED_EVERY, now + STILL_ALIVE_EVERY
        self._is_behind, self._is_over = True, False
        self._batch: Batch | None = None
        self._given = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def batches(self) -> AsyncIterator[Batch]:
        """What happens, until the stream is too old or its reader may not read any more; empty ones in between."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                await self._given.wait()
                self._given.clear()
                batch, self._batch = self._batch, None
                if batch is not None:
                    yield batch
                if self._is_over:
                    return
                if batch is not None and batch.more:
                    _watch.hurry()
        finally:
            self.close()

    def close(self) -> None:
        """Nobody reads any more."""
        _watch.remove(self)

    def feed(self, moved: set[UUID], until: datetime) -> None:
        """Gives it what there is, if it has taken what came before."""
        now = time.monotonic()
        if now >= self._ends_at or (now >= self._asks_at and not self._admitted()):
            self._is_over = True
            self._tell()
            self.close()
            return
        self._asks_at = now + ADMITTED_EVERY if now >= self._asks_at else self._asks_at
        self._is_behind = self._is_behind or not moved.isdisjoint(self.source.ids)
        if self._batch is not None or self._loop is None:
            return
        if self._is_behind or now >= self._speaks_at:
            self._read(until, now)

    def _read(self, until: datetime, now: float) -> None:
        batch = self.source.read(self._place, until)
        self._place, self._is_behind = batch.place, batch.more
        if batch.events or now >= self._speaks_at:
            self._batch, self._speaks_at = batch, now + STILL_ALIVE_EVERY
            self._tell()
        elif batch.more:
            _watch.hurry()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it whoever read
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._given.set)


class _Watch:
    """The followers of this process, and the thread that looks for them while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: list[Follower] = []
        self._thread: threading.Thread | None = None
        self._hurried = threading.Event()

    def add(self, follower: Follower) -> None:
        with self._lock:
            own = sum(each.owner == follower.owner for each in self._followers)
            if own >= MOST_OF_ONE or len(self._followers) >= MOST:
                raise TooManyFollowers(
                    f"{own} streams are open here already; close one, or read pages of events instead of a stream.",
                    retry_after=LONGEST / 10,
                )
            self._followers.append(follower)
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="following", daemon=True)
                self._thread.start()

    def remove(self, follower: Follower) -> None:
        with self._lock, suppress(ValueError):
            self._followers.remove(follower)

    def hurry(self) -> None:
        self._hurried.set()

    def _living(self) -> list[Follower]:
        with self._lock:
            if not self._followers:
                self._thread = None
            return list(self._followers)

    def _look(self) -> None:
        since: datetime | None = None
        try:
            while followers := self._living():
                since = self._feed(followers, since)
                self._hurried.wait(TICK)
                self._hurried.clear()
        finally:
            connections.close_all()
            with self._lock:  # whatever ended it, the next who follows gets another
                if self._thread is threading.current_thread():
                    self._thread = None

    def _feed(self, followers: list[Follower], since: datetime | None) -> datetime | None:
        """Returns up to when was looked; after an error of the database the same time is looked at again."""
        try:
            until = event_sources.horizon()
            ids = frozenset[UUID]().union(*(each.source.ids for each in followers))
            moved = event_sources.moved(ids, since, until) if since else set()
            for each in followers:
                each.feed(moved, until)
        except Error as error:
            log.warning("following: %s", error)
            connections.close_all()
            time.sleep(_AFTER_AN_ERROR)
            return since
        return until


_watch = _Watch()


def follow(source: Source, *, after: str, owner: Hashable, admitted: Callable[[], bool]) -> Follower:
    """A new stream; whoever gets it iterates over its `batches`, or closes it.

    Args:
        after: the place of the last event that the reader has; empty for a new reader.
        owner: of whom no more than MOST_OF_ONE streams may be open in this process.
        admitted: asked every few seconds whether the reader still may.

    Raises:
        FilterInvalid: the place is none of the source's, or too old.
        TooManyFollowers: as many streams are open as may be.
    """
    follower = Follower(source, source.first_place(after), owner, admitted)
    _watch.add(follower)
    return follower
