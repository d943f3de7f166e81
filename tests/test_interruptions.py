"""Workers that are paused, doubled, drained, killed whole or cut off from the database; the ledger is the judge."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Iterator

import pytest
from django.db import connection

from checkpoint.config.embedded_postgres import Server
from checkpoint.models import AuditEntry, Evidence, Workflow
from checkpoint.states import CaseReason, CaseStatus, StepStatus, WorkflowStatus
from tests.effects import ALL, KEYED, KEYED_LOOKED_UP, OPAQUE, QUERYABLE, EffectKind
from tests.rig import Rig
from tests.sandbox_driver import wait_for
from tests.worker_driver import CeleryWorker
from workers.celery import app

pytestmark = pytest.mark.slow

LEASE_SECONDS = "1.5"


@pytest.fixture
def system(rig: Rig) -> Iterator[Rig]:
    """The running system with no worker of an earlier test and no fault."""
    yield rig
    rig.crash.clear()
    rig.sandbox.clear()
    while rig.started:
        rig.started.pop().end()


def worker(rig: Rig, *, processes: int = 1) -> CeleryWorker:
    return rig.worker(processes=processes, CHECKPOINT_LEASE_SECONDS=LEASE_SECONDS)


def pause(rig: Rig, kind: EffectKind, point: str) -> tuple[Workflow, int]:
    """Stops a worker process at a point; returns the workflow and the process."""
    worker(rig)
    rig.crash.set(point, kind.name, "STOP")
    workflow = rig.submit(kind.step(rig.sandbox))
    wait_for(rig.crash.happened)
    return workflow, rig.holder(workflow, kind.name).pid


def late_reports(workflow: Workflow) -> int:
    return AuditEntry.objects.filter(stream_id=workflow.pk, verb="refuse_late_report").count()


@pytest.mark.parametrize("point", ["before_call/execute", "after_call/execute"])
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_s07_a_worker_paused_past_its_lease_writes_nothing_and_nothing_happens_twice(
    system: Rig, kind: EffectKind, point: str
) -> None:
    workflow, paused = pause(system, kind, point)
    worker(system)
    first = system.rest(workflow)
    assert first.status == (WorkflowStatus.NEEDS_REVIEW if kind is OPAQUE else WorkflowStatus.COMPLETED)
    os.kill(paused, signal.SIGCONT)
    wait_for(lambda: late_reports(workflow))
    system.status(workflow, WorkflowStatus.COMPLETED)
    assert kind.count(system.sandbox, system.step(workflow, kind.name)) == 1
    assert [case.status for case in system.cases(workflow)] == ([CaseStatus.SETTLED] if kind is OPAQUE else [])
    assert Evidence.objects.filter(step__workflow=workflow, kind="late_receipt").exists()


def test_s40_s41_doubled_late_and_lost_doorbells_change_nothing(system: Rig) -> None:
    worker(system, processes=2)
    worker(system, processes=1)
    workflows = [system.submit(*(kind.step(system.sandbox) for kind in ALL)) for _ in range(10)]
    for _ in range(100):
        app.send_task("workers.tasks.drive", ["extra"], {"unknown": True})
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM pgmq.q_checkpoint WHERE random() < 0.5")
    for workflow in workflows:
        assert system.rest(workflow).status == WorkflowStatus.COMPLETED
        for kind in ALL:
            step = system.step(workflow, kind.name)
            assert (step.attempt_count, kind.count(system.sandbox, step)) == (1, 1)


def test_s41_a_workflow_whose_doorbell_was_lost_is_found_by_the_sweeper(system: Rig) -> None:
    workflow = system.submit(KEYED.step(system.sandbox))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM pgmq.q_checkpoint")
    worker(system)
    assert system.rest(workflow).status == WorkflowStatus.COMPLETED


def test_a_hidden_effect_is_never_completed_and_becomes_a_question(system: Rig) -> None:
    worker(system)
    system.sandbox.fault("hide_effect", KEYED_LOOKED_UP.path)
    workflow = system.rest(system.submit(KEYED_LOOKED_UP.step(system.sandbox)))
    assert workflow.status == WorkflowStatus.NEEDS_REVIEW
    (case,) = system.cases(workflow)
    assert case.reason == CaseReason.EFFECT_NOT_VISIBLE
    assert case.step.verification_count > 1
    moves = AuditEntry.objects.filter(stream_id=workflow.pk, text__contains='"after":"completed"')
    assert not moves.exists()


def test_s48_sigterm_lets_what_runs_finish_and_starts_nothing_more(system: Rig) -> None:
    draining = worker(system)
    system.sandbox.fault("hold", OPAQUE.path)
    workflow = system.submit(OPAQUE.step(system.sandbox), {**OPAQUE.step(system.sandbox), "name": "second"})
    system.sandbox.wait_held()
    draining.terminate()
    wait_for(lambda: "Warm shutdown" in draining.log.read_text())
    system.sandbox.release()
    assert draining.process.wait(20) == 0
    first, second = system.step(workflow, OPAQUE.name), system.step(workflow, "second")
    assert (first.status, second.status) == (StepStatus.VERIFIED, StepStatus.PREPARED)
    worker(system)
    assert system.rest(workflow).status == WorkflowStatus.COMPLETED
    assert system.cases(workflow) == []


def test_s42_a_worker_killed_whole_is_replaced_without_waiting_for_its_leases(system: Rig) -> None:
    """The lease here is the long one of production: what is measured is the noticing of death."""
    waited = [_seconds_to_take_over(system, system.worker(), system.worker()) for _ in range(5)]
    assert statistics.median(waited) < 2.0, waited


def _seconds_to_take_over(rig: Rig, *workers: CeleryWorker) -> float:
    rig.sandbox.fault("hold", QUERYABLE.path)
    workflow = rig.submit(QUERYABLE.step(rig.sandbox))
    rig.sandbox.wait_held()
    step = rig.step(workflow, QUERYABLE.name)
    holder = step.lease_holder_id
    doomed = next(one for one in workers if holder in one.ids)
    doomed.kill()
    killed_at = time.monotonic()
    wait_for(lambda: rig.step(workflow, QUERYABLE.name).fence > step.fence)
    seconds = time.monotonic() - killed_at
    rig.sandbox.clear()
    assert rig.rest(workflow).status == WorkflowStatus.COMPLETED
    for one in workers:
        one.end()
    return seconds


def test_s47_workers_reconnect_after_the_database_restarts_under_load(
    system: Rig, database_server: Server | None
) -> None:
    if database_server is None:
        pytest.skip("the database server is not ours to restart")
    worker(system, processes=2)
    kinds = (KEYED, KEYED_LOOKED_UP, QUERYABLE)
    workflows = [system.submit(*(kind.step(system.sandbox) for kind in kinds)) for _ in range(30)]
    wait_for(lambda: Workflow.objects.filter(pk__in=[w.pk for w in workflows], status="completed").exists())
    connection.close()
    database_server.stop()
    database_server.start()
    for workflow in workflows:
        assert system.rest(workflow).status == WorkflowStatus.COMPLETED
        for kind in kinds:
            assert kind.count(system.sandbox, system.step(workflow, kind.name)) == 1
