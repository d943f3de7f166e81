"""One worker process's signs of life, on a thread and connections of its own.

The process holds a session lock under a fresh random id, on a direct connection outside Django and outside any pool;
when the process dies, PostgreSQL releases the lock, and every other process can see it. The same thread renews the
leases of what the hands hold, tells what processes of this host were doing that died, ends the leases of all that died,
and ends this process when a call is overdue.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from checkpoint import leases
from checkpoint.fencing import LEASE
from checkpoint.models import WorkerProcess
from checkpoint.turns.calls import Worker
from workers import flight_recovery
from workers.boot import boot_id
from workers.registry import boot_time

BEAT_SECONDS = 0.5
RENEW_SECONDS = LEASE.total_seconds() / 3
# A hand that is this much past its deadline is stuck below Python: only the end of the process stops it.
OVERDUE_GRACE_SECONDS = 5.0
EXIT_OVERDUE = 75

log = logging.getLogger(__name__)


class Heartbeat:
    """Registers the process and keeps it known as alive until `stop`."""

    def __init__(self, tools: list[str]) -> None:
        self.tools = tools
        self.worker = Worker(uuid.uuid4(), frozenset(tools))
        self._lock_key = secrets.randbits(63)
        self._lock: psycopg.Connection[Any] | None = None
        self._stopping = threading.Event()
        self._holdings: Callable[[], Mapping[uuid.UUID, int]] = dict
        self._overdue_at: Callable[[], float | None] = lambda: None
        self._renewed_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> Worker:
        """Takes the lock, then announces the process: a row without a lock means death."""
        self._take_lock()
        leases.register(
            WorkerProcess(
                id=self.worker.id,
                lock_key=self._lock_key,
                host=socket.gethostname(),
                boot_id=boot_id(),
                pid=os.getpid(),
                tools=self.tools,
            )
        )
        self._thread.start()
        return self.worker

    def watch(self, *, holdings: Callable[[], Mapping[uuid.UUID, int]], overdue_at: Callable[[], float | None]) -> None:
        """Tells what the hands hold (fence by step), and the boot clock's time of the earliest deadline."""
        self._holdings, self._overdue_at = holdings, overdue_at

    def stop(self) -> None:
        """Takes the process off the list; its leases end with it."""
        self._stopping.set()
        self._thread.join(timeout=5)
        leases.end_process(self.worker.id, ending="stopped")
        if self._lock is not None:
            self._lock.close()

    def _run(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS):
            self._exit_if_overdue()
            try:
                self._beat()
            except (DatabaseError, psycopg.Error) as error:
                log.warning("heartbeat: %s; trying again", str(error).strip())
                close_old_connections()
        connection.close()

    def _beat(self) -> None:
        self._keep_lock()
        flight_recovery.tell_of_the_dead_now_and_then()
        leases.end_dead_processes()
        holdings = self._holdings()
        if holdings and time.monotonic() - self._renewed_at > RENEW_SECONDS:
            leases.renew(holdings, holder=self.worker.id)
            self._renewed_at = time.monotonic()

    def _keep_lock(self) -> None:
        """Takes the lock again after the connection was lost; others may have judged this process dead meanwhile."""
        assert self._lock is not None
        try:
            self._lock.execute("SELECT 1")
        except psycopg.Error:
            self._lock.close()
            self._take_lock()

    def _take_lock(self) -> None:
        self._lock = psycopg.connect(settings.DATABASE_DIRECT_URL, autocommit=True, application_name="checkpoint-alive")
        self._lock.execute("SELECT pg_advisory_lock(%s)", [self._lock_key])

    def _exit_if_overdue(self) -> None:
        overdue_at = self._overdue_at()
        if overdue_at is not None and boot_time() > overdue_at + OVERDUE_GRACE_SECONDS:
            log.error("a call is past its deadline and cannot be stopped: this process ends")
            os._exit(EXIT_OVERDUE)
