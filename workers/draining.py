"""Tells the processes of a worker's pool that their worker is shutting down.

Celery's main process gets SIGTERM and waits for running tasks, of which the pool's processes hear nothing. One byte of
shared memory, made before they are forked, tells them, so that a loop stops claiming and finishes what it holds.
"""

from __future__ import annotations

import mmap
from typing import Any

_flag = mmap.mmap(-1, 1)


def begin(**kwargs: Any) -> None:
    """Called in the main process when the shutdown starts."""
    _flag[0] = 1


def is_draining() -> bool:
    """True once the worker that this process belongs to has been asked to stop."""
    return _flag[0] == 1
