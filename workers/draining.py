"""Says whether this worker has been asked to stop, so that its loop stops claiming and finishes what it holds."""

from __future__ import annotations

import threading
from typing import Any

_asked = threading.Event()


def begin(**kwargs: Any) -> None:
    """Called when the shutdown starts, also in the middle of a task: signals come between two steps of it."""
    _asked.set()


def is_draining() -> bool:
    """True once the worker has been asked to stop."""
    return _asked.is_set()
