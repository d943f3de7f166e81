"""A worker killed at every durable boundary, and at some of those of its recovery; `make explore` has every pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoint.config.embedded_postgres import Addresses
from tests.proof import moved_time, mutations
from tests.proof.explorer import Cuts, Explorer, Part
from tests.proof.invariants import the_audit_chain_holds
from tests.proof.outside import Outside, outside_world
from tests.proof.subjects import SUBJECTS, Subject

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Those that CI explores at every boundary; of the others it takes some.
WHOLE = ("read_only", "idempotent", "idempotent_with_lookup", "queryable", "opaque", "sequence", "file_new")
SAMPLE, SMALL_SAMPLE = Part(each=151), Part(shards=7, each=0)
# RabbitMQ takes longer to start than all the others together; `make explore` has it.
IN_CI = [subject for subject in SUBJECTS if subject.name != "event_to_rabbitmq"]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory, database_addresses: Addresses) -> Iterator[Outside]:
    with outside_world(tmp_path_factory.mktemp("outside"), database_addresses.superuser) as made:
        yield made


@pytest.fixture
def explorer(database: Addresses, outside: Outside, tmp_path: Path) -> Iterator[Explorer]:
    yield Explorer(outside, tmp_path, database.owner)
    moved_time.restore(database.owner)


@pytest.fixture
def unprotected(database: Addresses, outside: Outside, tmp_path: Path) -> Iterator[Explorer]:
    """Its workers make calls before the commit that claims them."""
    yield Explorer(outside, tmp_path, database.owner, without=mutations.without_the_write_ahead_commit)
    moved_time.restore(database.owner)


@pytest.mark.parametrize("subject", IN_CI, ids=lambda subject: subject.name)
def test_a_worker_killed_at_any_boundary_leaves_one_effect_or_one_question(
    explorer: Explorer, subject: Subject
) -> None:
    whole = subject.name in WHOLE
    explorer.explore(subject, SAMPLE if whole else SMALL_SAMPLE)
    print(f"{subject.name}: {explorer.counts}")
    assert explorer.counts.violations == []
    assert the_audit_chain_holds() == []
    assert not explorer.counts.questions or subject.opaque, "only an opaque call that is cut in mid-air is a question"
    assert explorer.counts.questions or not (subject.opaque and whole)


@pytest.mark.parametrize("kind", ["queryable", "opaque"])
def test_the_explorer_notices_a_call_that_is_not_written_ahead(
    explorer: Explorer, unprotected: Explorer, kind: str
) -> None:
    """What a worker did that was killed before it had written anything is done again."""
    (subject,) = (one for one in SUBJECTS if one.name == kind)
    noticed, sound = (cut_when_it_had_arrived(one, subject) for one in (unprotected, explorer))
    assert noticed == {"at_most_one_effect_per_key", "completed_means_every_effect_exists_once"}
    assert sound == set()


def cut_when_it_had_arrived(explorer: Explorer, subject: Subject) -> set[str]:
    """The laws that do not hold after that."""
    arrived = explorer.run(subject, Cuts()).lives[0].index("request/arrived") + 1
    return {violation.law for violation in explorer.run(subject, Cuts(arrived)).found}
