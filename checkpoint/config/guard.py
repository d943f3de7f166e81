"""Runs one command and stops it when whoever started it is gone, by crash or on purpose.

    python guard.py SIGNAL GRACE COMMAND...

The starter holds the other end of standard input; when that closes, the command's own process gets SIGNAL, and after
GRACE seconds its whole process group is killed. Only the main process is signalled first, because a Celery worker's
children would otherwise die in the middle of a step. Standard library only: it runs beside every long-lived process.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

POLL_SECONDS = 0.05


def start(
    command: list[str],
    *,
    stop_signal: signal.Signals,
    grace: float,
    output: int,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Starts `command` in `folder` under a guard. `output` takes both streams; `grace` is in seconds."""
    guard = [sys.executable, "-I", "-S", str(Path(__file__)), str(int(stop_signal)), str(grace), *command]
    return subprocess.Popen(
        guard,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=folder,
        start_new_session=True,
    )


def ask_to_stop(guard: subprocess.Popen[bytes]) -> None:
    """Begins the orderly stop; wait for the guard to learn that it is over."""
    if guard.stdin is not None and not guard.stdin.closed:
        guard.stdin.close()


def main(arguments: list[str]) -> int:
    """The guard itself. Returns the command's exit code; as in a shell, 128 + N when signal N ended it."""
    stop_signal, grace, command = int(arguments[0]), float(arguments[1]), arguments[2:]
    for unwanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A handler, not SIG_IGN: the command would inherit that one.
        signal.signal(unwanted, lambda number, frame: None)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    while child.poll() is None:
        if _starter_is_gone():
            _stop(child, stop_signal, grace)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _starter_is_gone() -> bool:
    readable, _, _ = select.select([0], [], [], POLL_SECONDS)
    return bool(readable) and os.read(0, 1) == b""


def _stop(child: subprocess.Popen[bytes], stop_signal: int, grace: float) -> None:
    child.send_signal(stop_signal)
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
