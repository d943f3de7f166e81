"""Kills real workers around an effect that several want or that is undone, and believes only the provider's ledger."""

from __future__ import annotations

import os
import signal
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


@pytest.mark.parametrize("cut", ["before the answer", "after the answer"])
def test_the_owner_of_an_intent_is_killed_in_mid_air_and_who_waits_takes_the_receipt_of_one_effect(
    running: Rig, cut: str
) -> None:
    named = QUERYABLE.step(running.sandbox) | {"intent": f"ticket/{cut.replace(' ', '-')}"}
    running.sandbox.fault("hold", QUERYABLE.path)
    owning = running.submit({**named, "name": "owner"})
    running.sandbox.wait_held()
    waiting = running.submit({**named, "name": "waiter"})
    wait_for(lambda: running.step(waiting, "waiter").waits_for_id)
    if cut == "after the answer":
        running.crash.set("after_call/execute", "owner")
        running.sandbox.release()
        wait_for(running.crash.happened, 20)
    else:
        os.kill(running.holder(owning, "owner").pid, signal.SIGKILL)
        running.sandbox.release()
    assert [running.rest(each).status for each in (owning, waiting)] == [WorkflowStatus.COMPLETED] * 2
    owner, waiter = running.step(owning, "owner"), running.step(waiting, "waiter")
    assert waiter.receipt is not None
    assert (waiter.attempt_count, waiter.receipt.kind) == (0, "intent")
    assert (waiter.operation_id, waiter.idempotency_key) == (owner.operation_id, owner.idempotency_key)
    assert QUERYABLE.count(running.sandbox, owner) == 1
    assert running.cases(owning) + running.cases(waiting) == []


@pytest.mark.parametrize("changed", [False, True], ids=["still there", "changed since"])
def test_a_new_file_is_taken_away_again_unless_somebody_changed_it(running: Rig, changed: bool) -> None:
    path = f"undone-{changed}.txt"
    write = {"name": "write", "tool": "file.write"}
    workflow = running.rest(
        running.submit({**write, "arguments": {"path": path, "content": "new", "mode": "if_absent"}})
    )
    file, old = running.folder / "files" / path, running.step(workflow, "write")
    if changed:
        file.write_text("newer")
    made = compensations.request(step_id=old.pk, step_version=old.version, actor=ACTOR, reason="not wanted")
    made = running.status(made, WorkflowStatus.NEEDS_REVIEW if changed else WorkflowStatus.COMPLETED)
    assert [case.reason for case in running.cases(made)] == (["compensation_failed"] if changed else [])
    assert (file.read_text() if file.exists() else None) == ("newer" if changed else None)
