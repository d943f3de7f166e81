"""What one worker process keeps for its life: its heartbeat, its tools, its flight recorder and its engine."""

from __future__ import annotations

import threading
from typing import Any

from django.conf import settings

from workers import draining, flight_recorder, flight_recovery, publishing
from workers.engine import Engine
from workers.heartbeat import Heartbeat
from workers.registry import discover, label


class Process:
    """One worker process."""

    def __init__(self) -> None:
        tools = discover()
        publishing.publish(tools.values())
        self.heartbeat = Heartbeat([label(tool) for tool in tools.values()])
        worker = self.heartbeat.start()
        # Before the first claim: whom this process replaces may have left proof, and then there is nothing to look up.
        flight_recovery.tell_of_the_dead()
        hands = settings.CHECKPOINT_HANDS
        self.flight = flight_recorder.start(worker.id, hands=hands)
        self.engine = Engine(worker, tools, hands=hands, draining=draining.is_draining, flight=self.flight)
        self.heartbeat.watch(holdings=self.engine.holdings, overdue_at=self.engine.earliest_deadline)

    def stop(self) -> None:
        """Signs the process off."""
        self.heartbeat.stop()
        self.engine.close()
        self.flight.close()


_process: Process | None = None
_making = threading.Lock()


def current() -> Process:
    """This process's, made on first use."""
    global _process  # noqa: PLW0603 (one per process, made when Django is ready)
    with _making:
        if _process is None:
            _process = Process()
        return _process


def begin(**kwargs: Any) -> None:
    """Called when a worker starts, so that its death is noticed from its first call on."""
    current()


def end(**kwargs: Any) -> None:
    """Called when a worker stops in good order."""
    if _process is not None:
        _process.stop()
