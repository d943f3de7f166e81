"""A worker killed at every durable boundary, and at some of those of its recovery; `make explore` has every pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoint.config.embedded_postgres import Addresses
from tests.proof import moved_time
from tests.proof.explorer import Explorer, Part
from tests.proof.invariants import the_audit_chain_holds
from tests.proof.subjects import SUBJECTS, Outside, Subject, outside_world

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SAMPLE = Part(each=151)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with outside_world(tmp_path_factory.mktemp("outside")) as made:
        yield made


@pytest.fixture
def explorer(database: Addresses, outside: Outside, tmp_path: Path) -> Iterator[Explorer]:
    yield Explorer(outside, tmp_path, database.owner)
    moved_time.restore(database.owner)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_worker_killed_at_any_boundary_leaves_one_effect_or_one_question(
    explorer: Explorer, subject: Subject
) -> None:
    explorer.explore(subject, SAMPLE)
    print(f"{subject.name}: {explorer.counts}")
    assert explorer.counts.violations == []
    assert the_audit_chain_holds() == []
    assert bool(explorer.counts.questions) == subject.opaque, "an opaque call that is cut in mid-air is a question"
