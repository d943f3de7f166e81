"""One safeguard taken out at a time, in tests only and each at one named seam, to show that the proofs notice.

Each is a function that changes this process; `restored` undoes all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from checkpoint import decide, recording, workflow_rows

TakeOut = Callable[[], None]
LOCKS = ("_LOCK", "_LOCK_DUE")


def without_the_fence() -> None:
    """Every report counts as made under the present fence."""
    seam: Any = recording._Recorder
    seam.holds_fence = lambda self: True


def without_the_workflow_lock() -> None:
    """Workflows are read and not locked."""
    for name in LOCKS:
        statement, _, _ = getattr(workflow_rows, name).partition(" FOR UPDATE")
        setattr(workflow_rows, name, statement)


def without_the_settle_wait() -> None:
    """Nothing found is believed at once."""
    decide._quiet_at = lambda facts, contract: datetime.min.replace(tzinfo=UTC)


@contextmanager
def restored() -> Iterator[None]:
    """Whatever is taken out inside is back in afterwards."""
    seams: list[tuple[Any, str]] = [(recording._Recorder, "holds_fence"), (decide, "_quiet_at")]
    seams += [(workflow_rows, name) for name in LOCKS]
    originals = [getattr(owner, name) for owner, name in seams]
    try:
        yield
    finally:
        for (owner, name), original in zip(seams, originals, strict=True):
            setattr(owner, name, original)
