"""One loop and many hands: claim, act, record, next.

The loop collects what the hands have finished, and in one transaction records it and claims what may run next. The
hands make the calls and never touch the journal. After a crash anywhere here the journal says what is known: a call
that was claimed and not recorded is looked up, never blindly repeated.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from checkpoint import crash_points, journal, occasions
from checkpoint.people import ENGINE
from checkpoint.turns.calls import Claim, Report, Worker
from workers.flight_recorder import FlightRecorder
from workers.hand import make_call
from workers.registry import Deadline, Tool, boot_time

log = logging.getLogger(__name__)

COLLECT_SECONDS = 0.2
# Once one call has come back, others that come back this soon are recorded with it, by one commit.
GATHER_SECONDS = 0.002
# How soon a hand that computes lets the loop go on when the database has answered. Python's own 5 ms is a whole turn.
SWITCH_SECONDS = 0.0005
DATABASE_PATIENCE_SECONDS = 60.0


class Engine:
    """The loop of one worker process."""

    def __init__(
        self,
        worker: Worker,
        tools: dict[str, Tool],
        *,
        hands: int,
        draining: Callable[[], bool] = lambda: False,
        flight: FlightRecorder | None = None,
    ) -> None:
        self.worker = worker
        self.tools = tools
        self.flight = flight or FlightRecorder()
        self.hands = hands
        self.draining = draining
        self._claimed: queue.SimpleQueue[tuple[Claim, Deadline] | None] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._in_flight: dict[uuid.UUID, tuple[Claim, Deadline]] = {}
        self._guard = threading.Lock()
        sys.setswitchinterval(SWITCH_SECONDS)
        for number in range(hands):
            threading.Thread(target=self._hand, name=f"hand-{number}", daemon=True).start()

    def run_until_idle(self) -> int:
        """Works until nothing is ready and nothing is in flight; returns the number of calls made.

        While draining it claims nothing more and ends when what runs has been recorded.
        """
        calls = 0
        while True:
            reports = self._collect()
            claims = self._turn(reports)
            calls += len(claims)
            if not claims and not self._in_flight:
                return calls

    def holdings(self) -> dict[uuid.UUID, int]:
        """The fence of each step that a hand holds."""
        with self._guard:
            return {step: claim.fence for step, (claim, _) in self._in_flight.items()}

    def earliest_deadline(self) -> float | None:
        """The boot clock's time at which the first call in flight must be over."""
        with self._guard:
            return min((deadline.at for _, deadline in self._in_flight.values()), default=None)

    def close(self) -> None:
        """Lets the hands go. Call it when nothing is in flight."""
        for _ in range(self.hands):
            self._claimed.put(None)

    def _collect(self) -> list[Report]:
        """What has finished: waits for the first while any hand is busy, then a moment for those that follow it."""
        reports: list[Report] = []
        wait_until = time.monotonic() + COLLECT_SECONDS
        try:
            while len(reports) < len(self._in_flight):
                reports.append(self._finished.get(timeout=max(wait_until - time.monotonic(), 0.0)))
                if len(reports) == 1:
                    wait_until = time.monotonic() + GATHER_SECONDS
        except queue.Empty:
            pass
        return reports

    def _turn(self, reports: list[Report]) -> list[Claim]:
        """One transaction, then the calls that it claimed. The deadline counts from before the claim."""
        started_at = boot_time()
        free = 0 if self.draining() else self.hands - len(self._in_flight) + len(reports)
        if not reports and free <= 0:
            return []
        with occasions.begin(lambda: ENGINE):
            claims = self._record(reports, free)
        self._forget(reports)
        for claim in claims:
            self._hand_out(claim, Deadline(started_at + claim.deadline))
        return claims

    def _record(self, reports: list[Report], free: int) -> list[Claim]:
        """Records the set; one that fails is bisected, so that one bad outcome never delays another's record."""
        try:
            turn = partial(journal.take_turn, reports, worker=self.worker, hands=free, before_commit=self.flight.claim)
            claims = patiently(turn)
            journal.reach_points("after_commit", reports, claims)
            self.flight.commit(reports)
            return claims
        except Exception:
            if len(reports) <= 1:
                log.exception("could not record %s: it will be looked up when its lease ends", reports)
                return []
            half = len(reports) // 2
            return self._record(reports[:half], half) + self._record(reports[half:], free - half)

    def _forget(self, reports: list[Report]) -> None:
        with self._guard:
            for report in reports:
                self._in_flight.pop(report.claim.step_id, None)

    def _hand_out(self, claim: Claim, deadline: Deadline) -> None:
        with self._guard:
            self._in_flight[claim.step_id] = (claim, deadline)
        self._claimed.put((claim, deadline))

    def _hand(self) -> None:
        """One hand: makes the calls that are handed to it until it is let go."""
        while (handed := self._claimed.get()) is not None:
            self._finished.put(self._call(*handed))

    def _call(self, claim: Claim, deadline: Deadline) -> Report:
        crash_points.reach(f"before_call/{claim.activity.value}", claim.step_name)
        outcome = make_call(self.tools[claim.tool], claim, deadline, self.flight.slot(claim))
        crash_points.reach(f"after_call/{claim.activity.value}", claim.step_name)
        return Report(claim, outcome)


def patiently[R](verb: Callable[[], R]) -> R:
    """Runs a verb again while the database is away: nothing of a verb that failed has happened (S47).

    A commit whose answer was lost may have happened; then the second run finds moved fences, and keeps its reports as
    late evidence.
    """
    give_up_at = time.monotonic() + DATABASE_PATIENCE_SECONDS
    while True:
        try:
            return verb()
        except DatabaseError as error:
            if time.monotonic() > give_up_at or not _connection_lost(error):
                raise
            log.warning("the database is away: %s; trying again", str(error).strip())
            connection.close()
            time.sleep(0.2)


def _connection_lost(error: DatabaseError) -> bool:
    return isinstance(error, OperationalError | InterfaceError)
