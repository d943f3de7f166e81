"""One program run to its end, in a group, a folder and an environment of its own, and no longer than it may."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import IO

from checkpoint.outcomes import NotApplied
from workers.registry import Deadline
from workers.tools import command_guard
from workers.tools.command_output import Stream

_NOT_STARTED = "not started "


class Interrupted(Exception):
    """The program was ended from outside, and how far it had come is not known."""


@dataclass(frozen=True)
class Ended:
    """A program that ended by itself."""

    exit_code: int
    stdout: Stream
    stderr: Stream


def run(
    program: list[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    deadline: Deadline,
    sending: Callable[[], None] = lambda: None,
    ended: Callable[[Ended], None] = lambda _: None,
) -> Ended:
    """Runs the program, without a shell and without input.

    `sending` is called just before it starts; `ended` as soon as its end is known, before anything is cleared away.

    Raises:
        NotApplied: it was not started.
        Interrupted: it was killed, or did not end before the deadline.
    """
    with ExitStack() as stack:
        status_read, status_write = _pipe(stack)
        life_read, life_write = _pipe(stack)
        sending()
        passed = (status_write.fileno(), life_read.fileno())
        command = [*_GUARD, *map(str, passed), str(max(deadline.remaining(), 0.0)), *program]
        process = _start(command, environment, folder, passed)
        stack.callback(_end, process, life_write)
        status_write.close()
        life_read.close()
        how = _ended(_collect(process, status_read, deadline))
        ended(how)
    return how


_GUARD = [sys.executable, "-I", "-S", command_guard.__file__]


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """As files, which can be closed twice: closing a number twice could close what another thread opened meanwhile."""
    read, write = os.pipe()
    return (
        stack.enter_context(open(read, "rb", buffering=0)),
        stack.enter_context(open(write, "wb", buffering=0)),
    )


def _start(
    command: list[str], environment: Mapping[str, str], folder: Path, passed: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=passed,
            start_new_session=True,
        )
    except OSError as error:
        raise NotApplied(f"nothing was started: {error}", code="never_started") from None


def _end(process: subprocess.Popen[bytes], life: IO[bytes]) -> None:
    """Nothing of the group is left, however this was left."""
    life.close()
    _kill_group(process)
    for stream in (process.stdout, process.stderr):
        assert stream
        stream.close()
    process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, SIGKILL)


def _collect(process: subprocess.Popen[bytes], status: IO[bytes], deadline: Deadline) -> list[Stream]:
    assert process.stdout
    assert process.stderr
    numbers = [process.stdout.fileno(), process.stderr.fileno(), status.fileno()]
    streams = {number: Stream() for number in numbers}
    with selectors.DefaultSelector() as selector:
        for number in numbers:
            selector.register(number, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(deadline.remaining(), 0.0))
            if deadline.remaining() <= 0:
                raise Interrupted("it did not end before the deadline and was killed")
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                streams[key.fd].add(chunk)
                if not chunk:
                    selector.unregister(key.fd)
                    if key.fd == status.fileno():
                        _kill_group(process)  # the guard is gone; what it could not end would hold its output open
    return [streams[number] for number in numbers]


def _ended(streams: list[Stream]) -> Ended:
    stdout, stderr, status = streams
    said = status.head(str).partition("\n")[0]
    if said.startswith(_NOT_STARTED):
        raise NotApplied(f"nothing was started: {said.removeprefix(_NOT_STARTED)}", code="never_started")
    if not said.startswith("exit "):
        raise Interrupted(f"it was ended by {said}" if said else "it was killed")
    return Ended(int(said.removeprefix("exit ")), stdout, stderr)
