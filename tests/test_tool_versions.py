"""Publishing tools: the newest row is what the workers that started last promise."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.models import ToolVersion
from checkpoint.tool_versions import Declaration, newest_tools, publish_tools
from tests.submissions import ACTOR, INVOICE_SCHEMA

pytestmark = pytest.mark.usefixtures("database")


def declaration(deadline: float) -> Declaration:
    contract = Contract(RecoveryClass.OPAQUE, Reversibility.IRREVERSIBLE, deadline=deadline)
    return Declaration("effect", "1", "An effect.", INVOICE_SCHEMA, (Variant("only", contract),))


def deadline_in_force() -> float:
    deadline: float = newest_tools()["effect"].variants[0]["contract"]["deadline"]
    return deadline


def test_the_same_contract_is_stored_once() -> None:
    assert len(publish_tools([declaration(1.0)], actor=ACTOR)) == 1
    assert publish_tools([declaration(1.0)], actor=ACTOR) == []


def test_a_contract_that_comes_back_is_in_force_again() -> None:
    for deadline in (1.0, 2.0, 1.0):
        publish_tools([declaration(deadline)], actor=ACTOR)
        assert deadline_in_force() == deadline
    assert ToolVersion.objects.count() == 3


def test_workers_that_start_at_once_publish_once() -> None:
    barrier = threading.Barrier(4)

    def start() -> None:
        barrier.wait()
        publish_tools([declaration(1.0)], actor=ACTOR)
        connections.close_all()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ToolVersion.objects.count() == 1
