"""Workers that are paused past their lease, and doorbells that are doubled, late or lost; the ledger is the judge."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from django.db import connection

from checkpoint.models import AuditEntry, Evidence, Workflow
from checkpoint.states import CaseReason, CaseStatus, WorkflowStatus
from tests.effects import ALL, KEYED, KEYED_LOOKED_UP, OPAQUE, EffectKind
from tests.rig import Rig
from tests.sandbox_driver import wait_for
from workers.celery import app

pytestmark = pytest.mark.slow

LEASE_SECONDS = "1.5"


@pytest.fixture(scope="module")
def pair(rig: Rig) -> Rig:
    """Two workers with one process each, and leases short enough to run out under a paused one.

    Nobody waits for the word of its host, or it would be long overdue when it goes on, and end itself.
    """
    for _ in range(2):
        rig.worker(CHECKPOINT_LEASE_SECONDS=LEASE_SECONDS, CHECKPOINT_FLIGHT_WORD_SECONDS="0.1")
    return rig


@pytest.fixture
def system(pair: Rig) -> Iterator[Rig]:
    """Both workers at work, no fault and no plan."""
    yield pair
    pair.crash.clear()
    pair.sandbox.clear()


def late_reports(workflow: Workflow) -> int:
    return AuditEntry.objects.filter(stream_id=workflow.pk, verb="refuse_late_report").count()


@pytest.mark.parametrize("point", ["before_call/execute", "after_call/execute"])
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_s07_a_worker_paused_past_its_lease_writes_nothing_and_nothing_happens_twice(
    system: Rig, kind: EffectKind, point: str
) -> None:
    system.crash.set(point, kind.name, "STOP")
    workflow = system.submit(kind.step(system.sandbox))
    wait_for(system.crash.happened)
    paused = system.holder(workflow, kind.name).pid
    first = system.rest(workflow)
    assert not Evidence.objects.filter(step__workflow=workflow, kind="flight_record").exists(), (
        "it still holds its lock"
    )
    assert first.status == (WorkflowStatus.NEEDS_REVIEW if kind is OPAQUE else WorkflowStatus.COMPLETED)
    os.kill(paused, signal.SIGCONT)
    wait_for(lambda: late_reports(workflow))
    system.status(workflow, WorkflowStatus.COMPLETED)
    assert kind.count(system.sandbox, system.step(workflow, kind.name)) == 1
    assert [case.status for case in system.cases(workflow)] == ([CaseStatus.SETTLED] if kind is OPAQUE else [])
    assert Evidence.objects.filter(step__workflow=workflow, kind="late_receipt").exists()


def test_s40_s41_doubled_late_and_lost_doorbells_change_nothing(system: Rig) -> None:
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
    assert system.rest(workflow).status == WorkflowStatus.COMPLETED


def test_s41_the_broker_emptied_again_and_again_under_load_loses_nothing(system: Rig) -> None:
    """Doorbells and sweeps alike, each time that more of them have completed."""
    workflows = [system.submit(*(kind.step(system.sandbox) for kind in ALL)) for _ in range(10)]
    done = Workflow.objects.filter(pk__in=[w.pk for w in workflows], status=WorkflowStatus.COMPLETED)
    completed = 0
    while completed < len(workflows):
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM pgmq.q_checkpoint")
        completed = wait_for(lambda: (now := done.count()) > completed and now, 45)  # noqa: B023 (run at once)
    for workflow in workflows:
        for kind in ALL:
            assert kind.count(system.sandbox, system.step(workflow, kind.name)) == 1


def test_a_hidden_effect_is_never_completed_and_becomes_a_question(system: Rig) -> None:
    system.sandbox.fault("hide_effect", KEYED_LOOKED_UP.path)
    workflow = system.rest(system.submit(KEYED_LOOKED_UP.step(system.sandbox)))
    assert workflow.status == WorkflowStatus.NEEDS_REVIEW
    (case,) = system.cases(workflow)
    assert case.reason == CaseReason.EFFECT_NOT_VISIBLE
    assert case.step.verification_count > 1
    moves = AuditEntry.objects.filter(stream_id=workflow.pk, text__contains='"after":"completed"')
    assert not moves.exists()
