"""One worker process of a simulation: what it holds, what its hands are doing, and its own idea of time."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from checkpoint.models import Activity
from checkpoint.outcomes import Outcome, Refused
from checkpoint.turns.calls import Claim, Report, Worker
from tests.proof.simulated_provider import CONTRACTS, Provider, seconds

HANDS = 3
TOOLS = frozenset(f"{name}@1" for name in CONTRACTS)
OVERDUE_GRACE = seconds(5)


@dataclass
class Flight:
    """One call in a hand.

    Attributes:
        deadline: on the worker's own clock.
        sends_at: when its first byte leaves, if the worker is running then.
        returns_at: when the hand has an answer; None before it has sent.
    """

    claim: Claim
    deadline: datetime
    sends_at: datetime
    returns_at: datetime | None = None
    outcome: Outcome | None = None

    def has_returned(self, now: datetime) -> bool:
        """Whether the hand is done."""
        return self.returns_at is not None and self.returns_at <= now


@dataclass
class SimulatedWorker:
    """A process. Its clock is wrong by `skew`; only durations on it count.

    Attributes:
        lock_key: of the session lock by which others see that it lives.
        stopped_until: a pause, as by SIGSTOP: it does nothing, not even beat.
        bell: a doorbell has reached it, or it is in its loop.
    """

    id: uuid.UUID
    lock_key: int
    skew: timedelta
    stopped_until: datetime | None = None
    bell: bool = False
    beat_at: datetime | None = None
    flights: dict[uuid.UUID, Flight] = field(default_factory=dict)

    @property
    def worker(self) -> Worker:
        """As the journal knows it."""
        return Worker(self.id, TOOLS)

    def runs(self, now: datetime) -> bool:
        """Whether it is not stopped."""
        return self.stopped_until is None or self.stopped_until <= now

    def holdings(self) -> dict[uuid.UUID, int]:
        """The fence of each step that a hand holds."""
        return {step: flight.claim.fence for step, flight in self.flights.items()}

    def free_hands(self) -> int:
        """How many hands do nothing."""
        return HANDS - len(self.flights)

    def take(self, claims: list[Claim], begun_at: datetime, rng: Random) -> None:
        """Hands out what was claimed. The deadline counts from before the claim."""
        for claim in claims:
            deadline = begun_at + self.skew + seconds(claim.deadline)
            self.flights[claim.step_id] = Flight(claim, deadline, begun_at + seconds(rng.random() / 10))

    def work(self, provider: Provider, now: datetime) -> None:
        """What its hands do until now."""
        for flight in self.flights.values():
            if flight.returns_at is None and flight.sends_at <= now:
                flight.returns_at, flight.outcome = self._call(flight, provider, now)

    def is_overdue(self, now: datetime) -> bool:
        """A hand is stuck past its deadline: the process has to end."""
        return any(
            not flight.has_returned(now) and now + self.skew > flight.deadline + OVERDUE_GRACE
            for flight in self.flights.values()
        )

    def finished(self, now: datetime) -> list[Report]:
        """What the hands bring back."""
        done = [flight for flight in self.flights.values() if flight.has_returned(now)]
        return [Report(flight.claim, flight.outcome) for flight in done if flight.outcome is not None]

    def forget(self, reports: list[Report]) -> None:
        """They are recorded."""
        for report in reports:
            self.flights.pop(report.claim.step_id, None)

    def next_event(self) -> datetime | None:
        """When one of its hands does something."""
        return min((flight.returns_at or flight.sends_at for flight in self.flights.values()), default=None)

    def _call(self, flight: Flight, provider: Provider, now: datetime) -> tuple[datetime, Outcome]:
        claim = flight.claim
        if claim.activity is Activity.INSPECT:
            return now + seconds(0.05), provider.look_up(claim.idempotency_key, now)
        if claim.activity is Activity.VERIFY:
            return now + seconds(0.05), provider.read(claim.idempotency_key, now)
        if now + self.skew >= flight.deadline:
            return now, Refused("too late to send", "deadline_before_send")
        answer = provider.send(claim.idempotency_key, CONTRACTS[claim.tool], claim.claimed_at, now)
        return answer.at, answer.outcome
