"""Runs real workers for tests: Celery with its pool, on the real broker, against the test's database.

`Workers` starts and ends processes by their ids; a crash plan kills or stops one of them at a named point, for real.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import WorkerProcess
from tests.sandbox_driver import wait_for

START_SECONDS = 30.0


class CrashPlan:
    """The file that tells one worker process where to end."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "crash-plan"
        self.done = folder / "crash-plan.done"

    def set(self, point: str, step: str = "*", signal_name: str = "KILL") -> None:
        """The next process to reach the point with this step ends there."""
        self.done.unlink(missing_ok=True)
        draft = self.file.with_suffix(".new")
        draft.write_text(f"{point} {step} {signal_name}")
        draft.rename(self.file)

    def happened(self) -> bool:
        """Whether a process has ended by it."""
        return self.done.exists()

    def clear(self) -> None:
        """Nobody ends any more."""
        self.file.unlink(missing_ok=True)


class CeleryWorker:
    """One Celery worker: a main process and its pool."""

    def __init__(self, folder: Path, *, processes: int, env: dict[str, str], name: str) -> None:
        self.log = folder / f"{name}.log"
        known = {row.pk for row in WorkerProcess.objects.all()}
        command = [sys.executable, "-m", "celery", "-A", "workers.celery", "worker", "--loglevel=INFO"]
        command += ["--pool=prefork", f"--concurrency={processes}", f"--hostname={name}@test", "--without-mingle"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--without-gossip"], cwd=BASE_DIR, env={**os.environ, **env}, stdout=log, stderr=log
            )
        self.ids = wait_for(lambda: self._registered(known, processes), START_SECONDS)

    def _registered(self, known: set[uuid.UUID], processes: int) -> list[uuid.UUID] | None:
        assert self.process.poll() is None, self.log.read_text()
        new = [row.pk for row in WorkerProcess.objects.filter(ended_at=None) if row.pk not in known]
        return new if len(new) >= processes else None

    def pids(self) -> list[int]:
        """The pool's processes that live now; Celery forks the later ones from a thread of its own."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for children in threads for pid in children.read_text().split()]

    def kill_process(self, pid: int) -> None:
        """SIGKILL to one process of the pool; the main process starts another in its place."""
        assert pid in self.pids()
        os.kill(pid, signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM to the main process, as a deployment does it."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to all of it at once."""
        for pid in [self.process.pid, *self.pids()]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait(START_SECONDS)

    def end(self) -> None:
        """For tests that are over: in good order if it can, by force if it must."""
        if self.process.poll() is not None:
            return
        for pid in self.pids():
            os.kill(pid, signal.SIGCONT)
        self.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def beat(folder: Path, env: dict[str, str]) -> Iterator[None]:
    """The scheduler, which sends a sweep every second."""
    command = [sys.executable, "-m", "celery", "-A", "workers.celery", "beat", f"--schedule={folder / 'beat'}"]
    with (folder / "beat.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, f"--pidfile={folder / 'beat.pid'}"],
            cwd=BASE_DIR,
            env={**os.environ, **env},
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(START_SECONDS)
