"""Hypothesis picks what happens next, verb by verb, under the same laws; it shrinks a history that violates one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from checkpoint.config.embedded_postgres import Addresses
from tests.proof import moved_time
from tests.proof.simulation import Simulation
from tests.proof.stage import Stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES, STEPS = 12, 20


class Histories(RuleBasedStateMachine):
    """The public verbs of workers, sweeper, agent and person, in any order."""

    stage: Stage

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self._ids = self.stage.seeded_ids(Random(seed))
        self.history = Simulation(self.stage, Random(seed), self._ids.__enter__())
        self.history.world.pass_time(0)
        self.history.crew.start()
        self.history.people.submit()

    @rule(seconds=st.sampled_from([0.01, 0.3, 2.0, 11.0, 16.0, 40.0]))
    def time_passes_and_everybody_acts(self, seconds: float) -> None:
        self.history.world.pass_time(seconds)
        self.history.crew.act()

    @rule()
    def a_worker_starts(self) -> None:
        self.history.crew.start()

    @rule()
    def a_worker_dies(self) -> None:
        self.history.crew.kill_one()

    @rule()
    def a_worker_is_stopped(self) -> None:
        self.history.crew.stop_one()

    @rule()
    def another_workflow(self) -> None:
        self.history.people.submit()

    @rule()
    def the_agent_gives_one_up(self) -> None:
        self.history.people.abandon_workflow()

    @rule()
    def the_sweeper_comes_by(self) -> None:
        self.history.crew.sweep()

    @rule()
    def a_person_answers(self) -> None:
        self.history.people.answer_a_question()

    @rule()
    def somebody_has_an_effect_undone(self) -> None:
        self.history.people.undo_something()

    @rule()
    def two_turns_overlap(self) -> None:
        self.history.crew.two_turns_at_once()

    @invariant()
    def the_laws_hold(self) -> None:
        if hasattr(self, "history"):
            self.history.world.check()
            assert self.history.world.found == []

    def teardown(self) -> None:
        if hasattr(self, "history"):
            self.history.come_to_the_end()
            self.history.crew.end()
            self._ids.__exit__(None, None, None)
            assert self.history.world.found == []


@pytest.fixture
def stage(database: Addresses) -> Iterator[Stage]:
    made = Stage(database.owner)
    yield made
    made.close()
    moved_time.restore(database.owner)


def test_no_order_of_the_public_verbs_violates_a_law(stage: Stage) -> None:
    machine = type("OnThisStage", (Histories,), {"stage": stage})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
