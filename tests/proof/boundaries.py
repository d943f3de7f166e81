"""Where a worker process can be cut: every durable boundary, found by watching and not by naming.

Installed in a worker process of its own, just forked. Watched are the commits of its loop, every edge of a call, every
request that its hands send, its arrival and its answer, every statement that they send to a foreign database, every
program that they start, and every file that they rename, link or remove.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import psycopg
from django.db import connection

from checkpoint import crash_points

_FILES = ("rename", "replace", "link", "unlink")


@cache
def places_of_points() -> list[tuple[ModuleType, str]]:
    """Where `reach` goes by a name. Asked before the first fork, because it looks everywhere."""
    names = ((module, name) for module in list(sys.modules.values()) for name in list(vars(module)))
    return [(module, name) for module, name in names if vars(module)[name] is crash_points.reach]


class Boundaries:
    """Counts what the process comes to, and kills it at the one where it is to be cut.

    Args:
        trace: an open file; the name of every boundary is a line in it before anything else happens there. That of a
            named point ends with @ and the step's name.
        cut: the number of the boundary, from 1; 0 for none.
    """

    def __init__(self, trace: int, cut: int) -> None:
        self._trace = trace
        self._cut = cut
        self._count = 0
        self._guard = threading.Lock()
        self._sent = threading.local()

    def install(self) -> None:
        """Watches this process, for ever."""
        self._watch_commits()
        self._watch_points()
        self._watch_sockets()
        self._watch_files()
        self._watch_programs()
        self._watch_databases()

    def reach(self, name: str) -> None:
        """One boundary. Here the process may end, by SIGKILL."""
        with self._guard:
            self._count += 1
            os.write(self._trace, f"{name}\n".encode())
            if self._count == self._cut:
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()

    def _watch_commits(self) -> None:
        """Those of the loop's own connection that wrote something."""
        django: Any = connection
        commit = django._commit

        def watched() -> None:
            wrote = django.connection.execute("SELECT pg_current_xact_id_if_assigned()").fetchone()[0] is not None
            if wrote:
                self.reach("commit/before")
            commit()
            if wrote:
                self.reach("commit/after")

        django._commit = watched

    def _watch_points(self) -> None:
        """The named points, in every module that took `reach` by its name."""

        def watched(point: str, step: str) -> None:
            self.reach(f"{point}@{step}")

        for module, name in places_of_points():
            setattr(module, name, watched)

    def _watch_sockets(self) -> None:
        for name in ("send", "sendall"):
            self._wrap(socket.socket, name, self._sending)
        for name in ("recv", "recv_into"):
            self._wrap(socket.socket, name, self._receiving)

    def _sending(self, send: Callable[..., Any], *args: Any) -> Any:
        self.reach("request/before_send")
        self._sent.something = True
        return send(*args)

    def _receiving(self, receive: Callable[..., Any], *args: Any) -> Any:
        """What can be read was done by the provider; until it is read nobody here knows.

        Only the first bytes after something was sent tell more than was known before.
        """
        if not getattr(self._sent, "something", False):
            return receive(*args)
        self._sent.something = False
        select.select([args[0]], [], [], 10)
        self.reach("request/arrived")
        received = receive(*args)
        self.reach("request/answered")
        return received

    def _watch_files(self) -> None:
        for name in _FILES:
            self._wrap(os, name, self._changing(name))

    def _changing(self, name: str) -> Callable[..., Any]:
        def around(change: Callable[..., Any], *args: Any, **more: Any) -> Any:
            self.reach(f"file/before_{name}")
            done = change(*args, **more)
            self.reach(f"file/after_{name}")
            return done

        return around

    def _watch_programs(self) -> None:
        """One that was started has ended before anybody here looks at it."""

        def starting(start: Callable[..., None], program: Any, *args: Any, **more: Any) -> None:
            self.reach("program/before_start")
            start(program, *args, **more)
            os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
            self.reach("program/ended")

        self._wrap(subprocess.Popen, "__init__", starting)

    def _watch_databases(self) -> None:
        """Foreign ones: psycopg's bytes do not go through Python's sockets."""

        def waiting(wait: Callable[..., Any], *args: Any, **more: Any) -> Any:
            self.reach("database/before_send")
            answer = wait(*args, **more)
            self.reach("database/answered")
            return answer

        self._wrap(psycopg.Connection, "wait", waiting)

    def _wrap(self, owner: Any, name: str, around: Callable[..., Any]) -> None:
        """Only what the hands do counts: the outside world is theirs."""
        original = getattr(owner, name)

        def watched(*args: Any, **more: Any) -> Any:
            if not threading.current_thread().name.startswith("hand-"):
                return original(*args, **more)
            return around(original, *args, **more)

        setattr(owner, name, watched)
