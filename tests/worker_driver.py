"""Runs real workers for tests: Celery on the real broker, against the test's database.

`Workers` starts and ends processes by their ids; a crash plan kills or stops one of them at a named point, for real.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import WorkerProcess
from tests.sandbox_driver import wait_for

START_SECONDS = 180.0  # a worker starts within seconds, unless the machine is very busy


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
    """Celery workers of one process each, and who starts again what was killed, as `make up` does."""

    def __init__(self, folder: Path, *, processes: int, env: dict[str, str], name: str) -> None:
        self.log = folder / f"{name}.log"
        self._env = {**os.environ, **env}
        self._commands = [_command(f"{name}.{number}") for number in range(processes)]
        known = {row.pk for row in WorkerProcess.objects.all()}
        self._running = [self._start(command) for command in self._commands]
        self._stopping = threading.Event()
        self.ids = wait_for(lambda: self._registered(known), START_SECONDS)
        self._watcher = threading.Thread(target=self._start_again, daemon=True)
        self._watcher.start()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(command, cwd=BASE_DIR, env=self._env, stdout=log, stderr=log)

    def _registered(self, known: set[uuid.UUID]) -> list[uuid.UUID] | None:
        assert all(process.poll() is None for process in self._running), self.log.read_text()
        new = [row.pk for row in WorkerProcess.objects.filter(ended_at=None) if row.pk not in known]
        return new if len(new) >= len(self._running) else None

    def _start_again(self) -> None:
        while not self._stopping.wait(0.05):
            for number, process in enumerate(self._running):
                if process.poll() is not None:
                    self._running[number] = self._start(self._commands[number])

    def pids(self) -> list[int]:
        """The processes that live now."""
        return [process.pid for process in self._running if process.poll() is None]

    def wait_whole(self) -> None:
        """Waits until every process that was killed has been replaced and is at work."""
        wait_for(lambda: self._at_work() == len(self._commands), START_SECONDS)

    def _at_work(self) -> int:
        return WorkerProcess.objects.filter(ended_at=None, pid__in=self.pids()).count()

    def kill_process(self, pid: int) -> None:
        """SIGKILL to one process; another is started in its place."""
        assert pid in self.pids()
        os.kill(pid, signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM, as a deployment does it; nothing is started again."""
        self._stop_watching()
        for process in self._running:
            process.terminate()

    def kill(self) -> None:
        """SIGKILL to all of it at once; nothing is started again."""
        self._stop_watching()
        for process in self._running:
            process.kill()
        self.wait(START_SECONDS)

    def wait(self, seconds: float) -> list[int]:
        """The exit codes, once all have ended."""
        return [process.wait(seconds) for process in self._running]

    def end(self) -> None:
        """For tests that are over: in good order if it can, by force if it must."""
        for pid in self.pids():
            os.kill(pid, signal.SIGCONT)
        self.terminate()
        try:
            self.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def _stop_watching(self) -> None:
        self._stopping.set()
        self._watcher.join()


def _command(name: str) -> list[str]:
    worker = [sys.executable, "-m", "celery", "-A", "workers.celery", "worker", "--loglevel=INFO", "--pool=solo"]
    return [*worker, f"--hostname={name}@test", "--without-mingle", "--without-gossip", "--without-heartbeat"]


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
