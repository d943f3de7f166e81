"""Workers that are drained, killed whole, or cut off from the database; the ledger is the judge."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import pytest
from django.db import connection

from checkpoint.config.embedded_postgres import Server
from checkpoint.models import Workflow
from checkpoint.states import StepStatus, WorkflowStatus
from tests.effects import KEYED, KEYED_LOOKED_UP, OPAQUE, QUERYABLE
from tests.rig import Rig
from tests.sandbox_driver import wait_for
from tests.worker_driver import CeleryWorker

pytestmark = pytest.mark.slow


@pytest.fixture
def system(rig: Rig) -> Iterator[Rig]:
    """The running system with no worker of an earlier test and no fault."""
    yield rig
    rig.sandbox.clear()
    while rig.started:
        rig.started.pop().end()


def test_s48_sigterm_lets_what_runs_finish_and_starts_nothing_more(system: Rig) -> None:
    draining = system.worker()
    system.sandbox.fault("hold", OPAQUE.path)
    workflow = system.submit(OPAQUE.step(system.sandbox), {**OPAQUE.step(system.sandbox), "name": "second"})
    system.sandbox.wait_held()
    draining.terminate()
    wait_for(lambda: "Warm shutdown" in draining.log.read_text())
    system.sandbox.release()
    assert draining.wait(20) == [0]
    first, second = system.step(workflow, OPAQUE.name), system.step(workflow, "second")
    assert (first.status, second.status) == (StepStatus.VERIFIED, StepStatus.PREPARED)
    system.worker()
    assert system.rest(workflow).status == WorkflowStatus.COMPLETED
    assert system.cases(workflow) == []


def test_s42_a_death_is_noticed_long_before_the_lease_ends(system: Rig) -> None:
    """The lease is the long one of production: what is measured is the noticing of death."""
    worker = system.worker(processes=2)
    waited = [_seconds_to_take_over(system, worker) for _ in range(5)]
    assert statistics.median(waited) < 2.0, waited


def _seconds_to_take_over(rig: Rig, worker: CeleryWorker) -> float:
    worker.wait_whole()
    rig.sandbox.fault("hold", QUERYABLE.path)
    workflow = rig.submit(QUERYABLE.step(rig.sandbox))
    rig.sandbox.wait_held()
    fence = rig.step(workflow, QUERYABLE.name).fence
    worker.kill_process(rig.holder(workflow, QUERYABLE.name).pid)
    killed_at = time.monotonic()
    wait_for(lambda: rig.step(workflow, QUERYABLE.name).fence > fence)
    seconds = time.monotonic() - killed_at
    rig.sandbox.clear()
    assert rig.rest(workflow).status == WorkflowStatus.COMPLETED
    return seconds


def test_s42_a_worker_killed_whole_is_replaced_by_the_next_one(system: Rig) -> None:
    doomed = system.worker()
    system.sandbox.fault("hold", QUERYABLE.path)
    workflow = system.submit(QUERYABLE.step(system.sandbox))
    system.sandbox.wait_held()
    doomed.kill()
    system.worker()
    assert system.rest(workflow).status == WorkflowStatus.COMPLETED
    assert QUERYABLE.count(system.sandbox, system.step(workflow, QUERYABLE.name)) == 1


def test_s47_workers_reconnect_after_the_database_restarts_under_load(
    system: Rig, database_server: Server | None
) -> None:
    if database_server is None:
        pytest.skip("the database server is not ours to restart")
    kinds = (KEYED, KEYED_LOOKED_UP, QUERYABLE)
    workflows = [system.submit(*(kind.step(system.sandbox) for kind in kinds)) for _ in range(60)]
    system.worker(processes=2)  # only now, or all would be done before the last is submitted
    done = Workflow.objects.filter(pk__in=[w.pk for w in workflows], status=WorkflowStatus.COMPLETED)
    completed = wait_for(done.count)
    assert completed < len(workflows) - 4, "there is no load any more"
    connection.close()
    database_server.stop()
    database_server.start()
    for workflow in workflows:
        assert system.rest(workflow).status == WorkflowStatus.COMPLETED
        for kind in kinds:
            assert kind.count(system.sandbox, system.step(workflow, kind.name)) == 1
