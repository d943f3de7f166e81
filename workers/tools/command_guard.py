"""Stands between a worker and the program that it runs; started as a script of its own, with the standard library only.

    command_guard.py STATUS LIFE SECONDS PROGRAM [ARGUMENT…]

It leads a process group of its own. The whole group ends when the program has ended, when the seconds are over, or when
the worker is gone: LIFE is a pipe that only the worker holds open, however it dies. STATUS is a pipe whose first line
says how the program ended, as `exit N`, `signal N` or `not started WHY`; nothing, where it was cut off.

A worker has threads, and only a program without them may run code between fork and exec: hence a process, not a hook.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def main(status: int, life: int, seconds: float, program: list[str]) -> None:
    """Runs the program and says how it ended."""
    guard = os.getpid()
    for number in (status, life):
        fcntl.fcntl(number, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    child = os.fork()
    if child == 0:
        _become(program, status, guard)
    os.close(1)
    os.close(2)
    threading.Thread(target=_end_with_worker, args=(life, seconds), daemon=True).start()
    _, how = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(how)
    os.write(status, f"exit {code}\n".encode() if code >= 0 else f"signal {-code}\n".encode())
    _end_group()


def _become(program: list[str], status: int, guard: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        if os.getppid() == guard:  # else the guard died before it could be watched
            os.execv(program[0], program)
    except OSError as error:
        os.write(status, f"not started {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _end_with_worker(life: int, seconds: float) -> None:
    select.select([life], [], [], seconds)
    _end_group()


def _end_group() -> None:
    """Whatever the program started ends too, and so does this process."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:])
