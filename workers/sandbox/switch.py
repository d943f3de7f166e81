"""The switch: faults that the sandbox plays, set from outside over HTTP or by magic in a request's own body."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class FaultName(StrEnum):
    """What can go wrong. "Work" is the effect together with its line in the ledger."""

    REFUSE = "refuse"
    DROP_BEFORE_WORK = "drop_before_work"
    WORK_LATE = "work_late"
    CACHED_FAILURE = "cached_failure"
    HIDE_EFFECT = "hide_effect"
    LOOKUP_LAG = "lookup_lag"
    HOLD = "hold"
    ANSWER_LATE = "answer_late"
    DROP_AFTER_WORK = "drop_after_work"


@dataclass(frozen=True)
class Fault:
    """One fault and the requests that it strikes.

    Attributes:
        path: strikes this path and everything below it.
        times: how many requests it still strikes; None means until the switch is cleared.
        seconds: how long, where that has a meaning; None means until cleared or released.
        status: the HTTP status of a refusal or a cached failure.
    """

    fault: FaultName
    path: str = "/"
    method: str = "POST"
    times: int | None = 1
    seconds: float | None = None
    status: int = 503

    def strikes(self, method: str, path: str) -> bool:
        """Whether a request is one of those meant."""
        return method == self.method and (path == self.path or path.startswith(self.path.rstrip("/") + "/"))


@dataclass(frozen=True)
class Held:
    """A request that is kept open."""

    id: int
    method: str
    path: str
    key: str | None
    since: float


class Switch:
    """Which faults are set, and which requests are kept open by one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._faults: list[Fault] = []
        self._held: dict[int, Held] = {}
        self._ids = itertools.count(1)

    def set(self, fault: Fault) -> None:
        """Adds a fault; those set before stay."""
        with self._changed:
            self._faults.append(fault)

    def clear(self) -> None:
        """Takes every fault away and lets every held request go."""
        with self._changed:
            self._faults.clear()
        self.release(None)

    def release(self, held_id: int | None) -> None:
        """Lets one held request go, or all of them."""
        with self._changed:
            for one in [held_id] if held_id is not None else list(self._held):
                self._held.pop(one, None)
            self._changed.notify_all()

    def take(self, method: str, path: str) -> list[Fault]:
        """The faults that strike this request; each is used up by one."""
        with self._changed:
            struck = [fault for fault in self._faults if fault.strikes(method, path)]
            self._faults = [left for fault in self._faults if (left := _used(fault, fault in struck))]
            return struck

    def hold(self, *, method: str, path: str, key: str | None, seconds: float | None, gone: Callable[[], bool]) -> None:
        """Keeps a request open until it is released, its time is over, or `gone` says that the caller went away."""
        ends = time.monotonic() + seconds if seconds is not None else float("inf")
        with self._changed:
            held = Held(next(self._ids), method, path, key, time.time())
            self._held[held.id] = held
            while held.id in self._held and time.monotonic() < ends and not gone():
                self._changed.wait(0.02)
            self._held.pop(held.id, None)

    def to_json(self) -> dict[str, Any]:
        """What is set and what is waiting."""
        with self._changed:
            return {
                "faults": [asdict(fault) for fault in self._faults],
                "held": [asdict(held) for held in self._held.values()],
            }


def _used(fault: Fault, struck: bool) -> Fault | None:
    if not struck or fault.times is None:
        return fault
    return replace(fault, times=fault.times - 1) if fault.times > 1 else None


def read_fault(given: dict[str, Any]) -> Fault:
    """A fault from JSON. Raises ValueError or TypeError with a sentence about what is wrong."""
    return Fault(**{**given, "fault": FaultName(given.get("fault", ""))})


def read_magic(body: dict[str, Any]) -> Fault | None:
    """The fault that a body asks for itself, in `metadata.sandbox`: its name, or an object with a fault's members."""
    metadata = body.get("metadata")
    wanted = metadata.get("sandbox") if isinstance(metadata, dict) else None
    if wanted is None:
        return None
    return read_fault(wanted if isinstance(wanted, dict) else {"fault": wanted})
