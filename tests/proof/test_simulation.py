"""Histories of many workers, each from one seed. `make simulate SEEDS=2000` plays more of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkpoint.config.embedded_postgres import Addresses
from tests.proof import moved_time, mutations
from tests.proof.histories import history_of
from tests.proof.invariants import Violation, the_audit_chain_holds
from tests.proof.simulated_provider import CONTRACTS
from tests.proof.simulation import REPLAY, play, simulate
from tests.proof.stage import Stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEEDS = range(40)


@pytest.fixture
def stage(database: Addresses) -> Iterator[Stage]:
    made = Stage(database.owner)
    yield made
    made.close()
    moved_time.restore(database.owner)


def test_no_seed_violates_a_law(stage: Stage) -> None:
    for seed in SEEDS:
        assert simulate(stage, seed) == [], f"play it again: {REPLAY.format(seed=seed)}"
    assert the_audit_chain_holds() == []


@pytest.mark.parametrize("seed", [3, 17])
def test_a_seed_plays_the_same_history_again(stage: Stage, seed: int) -> None:
    first, again = (history_of(play(stage, seed)) for _ in range(2))
    assert first == again
    assert len(first) > 20
    assert history_of(play(stage, seed + 1)) != first


@pytest.mark.parametrize(
    ("take_out", "tools", "law"),
    [
        (mutations.without_the_fence, tuple(CONTRACTS), ""),
        (mutations.without_the_workflow_lock, tuple(CONTRACTS), ""),
        (mutations.without_the_settle_wait, ("sim.queryable",), ""),
        (mutations.without_limits, ("sim.limited",), "no_more_in_flight_than_allowed"),
        (mutations.without_limits, ("sim.paced",), "no_more_starts_than_the_rate"),
        (mutations.without_intents, ("sim.queryable",), ""),
    ],
    ids=lambda value: getattr(value, "__name__", None) or (value if isinstance(value, str) else ""),
)
def test_the_simulation_notices_a_missing_safeguard(
    stage: Stage, take_out: mutations.TakeOut, tools: tuple[str, ...], law: str
) -> None:
    """And with it the same seed violates nothing. Where no law is named, any may be violated."""
    with mutations.restored():
        take_out()
        noticed_by = next(seed for seed in SEEDS if noticed(simulate(stage, seed, tools), law))
    assert simulate(stage, noticed_by, tools) == []


def noticed(found: list[Violation], law: str) -> bool:
    return any(law in ("", violation.law) for violation in found)
