"""Kills real workers while they undo an effect, and believes only the provider's ledger: it is undone exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkpoint import compensations
from checkpoint.models import Workflow
from checkpoint.states import WorkflowStatus
from tests.effects import QUERYABLE
from tests.rig import ACTOR, Rig
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.slow

POINTS = ("before_commit/claim_execute", "before_call/execute", "after_call/execute", "after_commit/record_execute")


@pytest.fixture(scope="module")
def running(rig: Rig) -> Rig:
    rig.worker(processes=2)
    return rig


@pytest.fixture(autouse=True)
def calm(running: Rig) -> Iterator[None]:
    running.started[0].wait_whole()
    yield
    running.crash.clear()
    running.sandbox.clear()


@pytest.mark.parametrize("point", POINTS)
def test_killed_while_undoing_it_is_undone_once_and_both_stay_on_record(running: Rig, point: str) -> None:
    workflow = running.rest(running.submit(QUERYABLE.step(running.sandbox)))
    old = running.step(workflow, QUERYABLE.name)
    running.crash.set(point, f"undo_{old.name}")
    made = compensations.request(step_id=old.pk, step_version=old.version, actor=ACTOR, reason="ordered twice")
    wait_for(running.crash.happened, 20)
    running.rest(made)
    undoing = running.step(made, f"undo_{old.name}")
    assert Workflow.objects.get(pk=made.pk).status == WorkflowStatus.COMPLETED
    assert Workflow.objects.get(pk=workflow.pk).status == WorkflowStatus.COMPLETED
    assert QUERYABLE.count(running.sandbox, undoing) == 1
    assert QUERYABLE.count(running.sandbox, old) == 1
    assert running.cases(made) == []
