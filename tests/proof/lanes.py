"""Two transactions that overlap on purpose: one is held before its n-th statement while the other one runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
from django.db import connection

from checkpoint.rows import statements

BLOCKED = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
PATIENCE_SECONDS = 20.0

_here = threading.local()


class Lanes:
    """Two threads with a connection each. What they wait for is seen on a third connection."""

    def __init__(self, watching: psycopg.Connection[Any]) -> None:
        self._watching = watching
        self._lanes = [ThreadPoolExecutor(1, thread_name_prefix=f"lane-{number}") for number in range(2)]
        self._original = statements._run
        seams: Any = statements
        seams._run = self._run

    def close(self) -> None:
        """Ends the threads and their connections."""
        seams: Any = statements
        seams._run = self._original
        for lane in self._lanes:
            lane.submit(lambda: connection.close()).result()  # noqa: PLW0108 (it is another thread's)
            lane.shutdown()

    def overlap(self, first: Callable[[], Any], second: Callable[[], Any], *, after: int) -> list[Any]:
        """Runs the first up to its n-th statement, then the second to its end or to a lock, then the rest.

        Returns:
            What each returned, or the exception that it raised.
        """
        gate = _Gate(after)
        begun = self._lanes[0].submit(_guarded, first, gate)
        _until(lambda: gate.reached.is_set() or begun.done())
        pid = self._lanes[1].submit(_pid).result()
        beside = self._lanes[1].submit(_guarded, second, None)
        _until(lambda: beside.done() or self._is_blocked(pid))
        gate.open.set()
        return [_result(begun), _result(beside)]

    def _is_blocked(self, pid: int) -> bool:
        row = self._watching.execute(BLOCKED, [pid]).fetchone()
        return bool(row and row[0])

    def _run(self, statement: str, parameters: dict[str, Any]) -> Any:
        gate = getattr(_here, "gate", None)
        if gate is not None:
            gate.come()
        return self._original(statement, parameters)


class _Gate:
    """Holds a thread before its n-th statement until it is let go."""

    def __init__(self, after: int) -> None:
        self._left = after
        self.reached = threading.Event()
        self.open = threading.Event()

    def come(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            self.open.wait(PATIENCE_SECONDS)


def _guarded(verb: Callable[[], Any], gate: _Gate | None) -> Any:
    _here.gate = gate
    try:
        return verb()
    finally:
        _here.gate = None


def _pid() -> int:
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def _until(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at, "two overlapping turns wait for each other"
        time.sleep(0.0005)


def _result(future: Future[Any]) -> Any:
    try:
        return future.result(PATIENCE_SECONDS)
    except Exception as error:
        return error
