"""Many workers on the real server under one seed: crashes, pauses, lost and doubled doorbells, and faulty providers.

Production's verbs run as they are. Time stands still while one of them runs and is moved between them; one scheduler
decides from one seed what happens next, so that a seed plays the same history again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from random import Random

from django.db.models import Min

from checkpoint import leases
from checkpoint.models import Workflow
from tests.proof.invariants import Violation
from tests.proof.simulated_crew import Crew
from tests.proof.simulated_people import People
from tests.proof.simulated_provider import CONTRACTS, Provider, seconds
from tests.proof.simulated_witness import SimulatedWitness
from tests.proof.simulated_world import World
from tests.proof.stage import Stage

FAULTY_ROUNDS, MOST_ROUNDS = 40, 400
QUICKEST_ROUND = seconds(0.5)
REPLAY = "python -m tests.proof.simulate --seed {seed}"


def simulate(stage: Stage, seed: int, tools: Sequence[str] = tuple(CONTRACTS)) -> list[Violation]:
    """Plays one seed, with steps of these tools; returns what was violated."""
    return play(stage, seed, tools).found


def play(stage: Stage, seed: int, tools: Sequence[str] = tuple(CONTRACTS)) -> World:
    """Plays one seed; returns the world as it was left."""
    rng = Random(seed)
    with stage.seeded_ids(Random(rng.random())) as begin:
        history = Simulation(stage, rng, begin, tools)
        try:
            history.play()
        finally:
            history.crew.end()
    return history.world


class Simulation:
    """One history."""

    def __init__(self, stage: Stage, rng: Random, begin: datetime, tools: Sequence[str] = tuple(CONTRACTS)) -> None:
        provider = Provider(Random(rng.random()))
        self.rng = rng
        self.world = World(stage, rng, begin, tuple(tools), provider, SimulatedWitness(provider))
        self.crew = Crew(self.world)
        self.people = People(self.world, self.crew)

    def play(self) -> None:
        """Faults for a while, then everything is well and all has to come to its end."""
        self.world.tell()
        for _ in range(self.rng.randint(2, 4)):
            self.crew.start()
        for _ in range(self.rng.randint(1, 3)):
            self.people.submit()
        for _ in range(FAULTY_ROUNDS):
            self.round()
            if self.world.found:
                return
        self.come_to_the_end()

    def come_to_the_end(self) -> None:
        """From now on nothing goes wrong, and everything has to come to its end."""
        self.world.provider.faulty = False
        self.crew.heal()
        self._settle()
        self.world.check(quiescent=True)

    def round(self) -> None:
        """A little time passes, something may go wrong, everybody who can acts."""
        self.world.pass_time(self.rng.choices([0.02, 0.2, 2.0, 20.0], [6, 5, 3, 1])[0] * self.rng.random())
        happening = self.rng.random()
        for limit, happens in (
            (0.03, self.crew.kill_one), (0.07, self.crew.stop_one), (0.09, self.people.submit),
            (0.10, self.people.abandon_workflow), (0.16, self.people.answer_a_question),
            (0.19, self.people.undo_something), (0.23, self.world.check), (0.33, self.crew.two_turns_at_once),
        ):  # fmt: skip
            if happening < limit:
                happens()
                break
        self.crew.act()

    def _settle(self) -> None:
        if not self.crew.workers:
            self.crew.start()
        leases.end_dead_processes()
        for _ in range(MOST_ROUNDS):
            if leases.anything_due():
                self.rng.choice(self.crew.workers).bell = True
            self.crew.act()
            upcoming = self._next_event()
            if self.people.are_asked():
                self.people.answer_a_question()
            elif upcoming is None:
                leases.wake_workflows_left_alone()
                if self._next_event() is None:
                    return
            if self.world.found:
                return
            now = self.world.now
            self.world.pass_time((max(upcoming or now, now + QUICKEST_ROUND) - now).total_seconds())
        self.world.found.append(Violation("it_comes_to_rest", "simulation", f"not after {MOST_ROUNDS} rounds"))

    def _next_event(self) -> datetime | None:
        wakes = Workflow.objects.filter(pk__in=self.world.workflows).aggregate(Min("wake_at"))["wake_at__min"]
        hands = [worker.next_event() for worker in self.crew.workers]
        return min(filter(None, [wakes, *hands, self.world.provider.next_landing()]), default=None)
