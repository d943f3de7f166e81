"""The long-lived processes of an installation: read from the Procfile, started, watched, stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from checkpoint.config import guard
from checkpoint.config.environment import BASE_DIR

STOP_SECONDS = 30.0
LONGEST_PAUSE = 30.0
HEALTHY_SECONDS = 60.0
COLOURS = (36, 33, 32, 35, 34)


class Output:
    """Writes what several processes say, one whole line at a time, each with its process's name in front."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream = stream or sys.stdout
        self._lock = threading.Lock()
        self._names: list[str] = []

    def say(self, line: str, name: str = "") -> None:
        """One line; from the supervisor itself when there is no name."""
        with self._lock:
            print(f"{self._prefix(name)}{line}" if name else line, file=self.stream, flush=True)

    def follow(self, pipe: IO[bytes], name: str) -> None:
        """Passes on everything that comes out of `pipe`, on a thread that ends with it."""

        def pass_on() -> None:
            for line in pipe:
                self.say(line.decode(errors="replace").rstrip(), name)

        threading.Thread(target=pass_on, name=f"output of {name}", daemon=True).start()

    def _prefix(self, name: str) -> str:
        if name not in self._names:
            self._names.append(name)
        label = f"{name:>9} | "
        colour = COLOURS[self._names.index(name) % len(COLOURS)]
        return f"\x1b[{colour}m{label}\x1b[0m" if self.stream.isatty() else label


class Process:
    """One line of the Procfile. A shell expands its variables and is replaced by the command itself."""

    def __init__(self, name: str, command: str, env: dict[str, str], output: Output) -> None:
        self.name = name
        self.command = ["/bin/sh", "-c", f"exec {command}"]
        self.env = env
        self.output = output
        self.pauses = 0
        self.started_at = 0.0
        self.restart_at = 0.0
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it under a guard, which ends it when this process is gone."""
        self.started_at = time.monotonic()
        self.restart_at = 0.0
        self._guard = guard.start(
            self.command,
            stop_signal=signal.SIGTERM,
            grace=STOP_SECONDS,
            output=subprocess.PIPE,
            env=self.env,
            folder=BASE_DIR,
        )
        if self._guard.stdout is not None:
            self.output.follow(self._guard.stdout, self.name)

    def watch(self) -> None:
        """Call often: starts a process that ended by itself again, after a pause that doubles while it keeps ending."""
        if self._guard is None or self._guard.poll() is None:
            return
        now = time.monotonic()
        if not self.restart_at:
            self.pauses = 0 if now - self.started_at > HEALTHY_SECONDS else self.pauses + 1
            pause = min(2.0 ** (self.pauses - 1), LONGEST_PAUSE) if self.pauses else 0.0
            self.restart_at = now + pause
            self.output.say(f"ended with code {self._guard.returncode}; starting again in {pause:g} s", self.name)
        elif now >= self.restart_at:
            self.start()

    def ask_to_stop(self) -> None:
        """SIGTERM to its main process alone; whatever is left of its group is killed STOP_SECONDS later."""
        if self._guard is not None:
            guard.ask_to_stop(self._guard)

    def wait(self) -> None:
        """Until it has ended."""
        if self._guard is not None:
            self._guard.wait()


def stop(processes: Iterable[Process]) -> None:
    """Stops them side by side and waits for the last."""
    running = list(processes)
    for process in running:
        process.ask_to_stop()
    for process in running:
        process.wait()


def read_procfile(file: Path) -> dict[str, str]:
    """Commands by name, in the file's order."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {name.strip(): command.strip() for name, _, command in pairs}
