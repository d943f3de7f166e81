"""A real worker process for one life: forked, its own connections, its own session lock, ended by SIGKILL where told.

It does what a Celery worker does (sweep, then the engine until it is idle) and moves database time itself where only
time is wanting, so that no lease or backoff is waited for.
"""

from __future__ import annotations

import os
import threading
import traceback
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections
from django.db.models import Min

from tests.proof.boundaries import Boundaries
from tests.proof.moved_time import move_to
from tests.proof.persons import Person, of_run
from tests.sandbox_driver import wait_for
from workers import process as composition
from workers import sweeper
from workers.registry import Tool

NAME = "proof-worker"
MOST_ROUNDS = 60
FAILED = 70
END = "end"

_abandoned: list[object] = []


@dataclass(frozen=True)
class Birthplace:
    """What every worker process of an exploration is born with.

    Attributes:
        trace: the file in which a life's boundaries are written down.
        owner_url: who may move the database's time.
        tools: found and published before.
        without: takes a safeguard out in the process.
    """

    trace: Path
    owner_url: str
    tools: dict[str, Tool]
    without: Callable[[], None] | None = None


def live(born: Birthplace, submitted: list[uuid.UUID], person: Person, *, cut: int) -> list[str]:
    """Lets a worker process live on the workflows of a run, to its cut or until nothing is left to do.

    Args:
        person: acts when nothing is left to do otherwise.
        cut: number of the boundary at which it is killed; 0 for none.

    Returns:
        The boundaries that it came to, in order; after the last one `END` if it was not killed.
    """
    born.trace.write_bytes(b"")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork.*", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = FAILED
        try:
            _live(born, submitted, person, cut)
            code = 0
        finally:
            os._exit(code)  # what its parent would do afterwards is not for the child
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        error = born.trace.with_suffix(".error")
        told = error.read_text() if error.exists() else "it said nothing"
        raise AssertionError(f"the worker ended with {os.WEXITSTATUS(status)}:\n{told}")
    _wait_until_gone(born.owner_url)
    return born.trace.read_text().split() + ([END] if os.WIFEXITED(status) else [])


def _live(born: Birthplace, submitted: list[uuid.UUID], person: Person, cut: int) -> None:
    try:
        _leave_parents_connections()
        threading.excepthook = lambda failed: _tell_and_end(born.trace, failed)
        if born.without:
            born.without()
        Boundaries(os.open(born.trace, os.O_WRONLY | os.O_APPEND), cut).install()
        _work(_process(born.tools), submitted, person, born.owner_url)
    except BaseException:
        born.trace.with_suffix(".error").write_text(traceback.format_exc())
        raise


def _tell_and_end(trace: Path, failed: threading.ExceptHookArgs) -> None:
    """A hand that dies never reports: the loop would wait for it until the heartbeat ends the process as overdue."""
    lines = traceback.format_exception(failed.exc_type, failed.exc_value, failed.exc_traceback)
    trace.with_suffix(".error").write_text("".join(lines))
    os._exit(FAILED)


def _leave_parents_connections() -> None:
    """The sockets are shared with the parent: they must neither be used nor closed in good order here."""
    os.environ["PGAPPNAME"] = NAME
    for connection in connections.all(initialized_only=True):
        _abandoned.append(connection.connection)
        connection.connection = None


def _process(tools: dict[str, Tool]) -> composition.Process:
    """The process as it ships; what costs most of its start has been done by its parent."""
    seams: Any = composition
    seams.discover = lambda: tools
    seams.publishing.publish = lambda tools: []
    return composition.Process()


def _work(process: composition.Process, submitted: list[uuid.UUID], person: Person, owner_url: str) -> None:
    for _ in range(MOST_ROUNDS):
        sweeper.sweep()
        process.engine.run_until_idle()
        wake_at = of_run(submitted).aggregate(Min("wake_at"))["wake_at__min"]
        if wake_at is not None:
            move_to(wake_at, owner_url)
        elif not person(submitted):
            return
    raise AssertionError(f"it never comes to rest: {list(of_run(submitted))}")


def _wait_until_gone(owner_url: str) -> None:
    """A killed process's transaction and session lock are gone once its server processes are."""
    left = "SELECT FROM pg_stat_activity WHERE application_name = ANY(%s)"
    with psycopg.connect(owner_url, autocommit=True) as owner:
        wait_for(lambda: owner.execute(left, [[NAME, "checkpoint-alive"]]).fetchone() is None)
