"""What everybody in a simulation shares: its time, its provider, its workflows, and what was violated."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from checkpoint.models import Attempt
from tests.proof import simulated_time
from tests.proof.invariants import Violation, no_more_in_flight_than_allowed, violations
from tests.proof.simulated_provider import CONTRACTS, Provider, seconds
from tests.proof.simulated_witness import SimulatedWitness
from tests.proof.stage import Stage

IN_FLIGHT = {tool: contract.in_flight for tool, contract in CONTRACTS.items()}


@dataclass
class World:
    """One history's.

    Attributes:
        tools: those that its workflows use.
        begin, now: database time, which stands still until `pass_time`.
        bells: when doorbells arrive.
        found: every law that was seen not to hold.
    """

    stage: Stage
    rng: Random
    begin: datetime
    tools: tuple[str, ...]
    provider: Provider
    witness: SimulatedWitness
    workflows: list[uuid.UUID] = field(default_factory=list)
    bells: list[datetime] = field(default_factory=list)
    found: list[Violation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = self.begin

    @property
    def faulty(self) -> bool:
        """Whether anything goes wrong from now on."""
        return self.provider.faulty

    def pass_time(self, amount: float) -> None:
        """Database time, and with it the world's."""
        self.now += seconds(amount)
        self.tell()
        self.provider.advance(self.now)

    def tell(self) -> None:
        """What time it is, to this thread's connection."""
        simulated_time.tell(self.now)

    def ring(self) -> None:
        """Somebody calls the workers: lost, late, or doubled."""
        for _ in range(self.rng.choices([0, 1, 2], [2, 6, 1])[0] if self.faulty else 1):
            self.bells.append(self.now + seconds(self.rng.choice([0.0, 0.0, 3.0]) * self.rng.random()))

    def failed(self, error: Exception) -> None:
        """No turn may fail: who holds the locks has all that it needs."""
        self.found.append(Violation("no_turn_fails", "simulation", f"{type(error).__name__}: {error}"))

    def after_turn(self) -> None:
        """What is judged in the moment in which it happens."""
        self.witness.see_new_cases(self.workflows, self.now)
        self.found += no_more_in_flight_than_allowed(self.workflows, IN_FLIGHT)

    def check(self, *, quiescent: bool = False) -> None:
        """The laws hold at every moment; at the end, more of them."""
        self.found += violations(self.workflows, self.witness, quiescent=quiescent)
        if quiescent:
            self.found += self._too_many_starts()

    def _too_many_starts(self) -> list[Violation]:
        """In no span of time more than the burst and what the rate gives."""
        found = []
        for tool, contract in CONTRACTS.items():
            if contract.starts_per_minute and contract.burst:
                made = Attempt.objects.filter(step__workflow__in=self.workflows, step__tool_version__name=tool)
                starts = sorted(made.values_list("started_at", flat=True))
                for first, start in enumerate(starts):
                    for count, end in enumerate(starts[first:], 1):
                        allowed = contract.burst + (end - start).total_seconds() * contract.starts_per_minute / 60
                        if count > allowed + 1e-3:
                            found.append(Violation("no_more_starts_than_the_rate", tool, f"{count} from {start}"))
        return found
