"""Kills the process that works on a bulk job, for real, between items and inside one: nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from approvals.bulk import jobs
from approvals.models import BulkJob, Decision
from checkpoint.models import AuditEntry, Evidence, Step
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import StepStatus
from tests import factories
from tests.bulk_driver import decider, results, started
from tests.rig import Rig
from tests.sandbox_driver import wait_for
from workers import doorbell

pytestmark = pytest.mark.slow

COUNT = 6
# A dead worker holds the job for some seconds more; then the sweep gives it to the next.
END_SECONDS = 45.0


@pytest.fixture(scope="module")
def running(rig: Rig) -> Rig:
    rig.worker(processes=2)
    return rig


@pytest.fixture(autouse=True)
def calm(running: Rig) -> Iterator[None]:
    yield
    running.crash.clear()


def ended(job: BulkJob) -> BulkJob:
    return wait_for(lambda: BulkJob.objects.filter(pk=job.pk, status="done").first(), END_SECONDS)


def asked(name: str) -> list[Step]:
    """Uncertain steps; the fourth has a name of its own. No worker has their tool, so nothing goes on by itself."""
    names = [name if number == 4 else f"{name}_{number}" for number in range(1, COUNT + 1)]
    return [factories.step(factories.workflow(), StepStatus.UNCERTAIN, name=one) for one in names]


@pytest.mark.parametrize("point", ["bulk/before_commit", "bulk/after_commit"])
def test_a_worker_killed_at_an_item_repeats_nothing_and_loses_nothing(running: Rig, point: str) -> None:
    steps = asked(point.replace("/", "_"))
    ada = decider(f"ada of {point}")
    running.crash.set(point, steps[3].name)
    job = started(ada, DecisionKind.RETRY, [factories.case(step) for step in steps])
    wait_for(running.crash.happened, 20)
    done = 3 if point == "bulk/before_commit" else 4
    assert results(job) == ["done"] * done + ["pending"] * (COUNT - done)
    assert Decision.objects.filter(case__step__in=steps).count() == done
    ended(job)
    assert results(job) == ["done"] * COUNT
    assert Decision.objects.filter(case__step__in=steps).count() == COUNT
    assert Evidence.objects.filter(step__in=steps, kind="attestation").count() == COUNT
    verbs = [entry.verb for entry in AuditEntry.objects.filter(stream_id=job.pk).order_by("seq")]
    assert verbs == ["create", "start", *["answer_item"] * COUNT, "finish"]


def test_a_job_whose_doorbell_was_lost_is_found_by_the_sweep(running: Rig) -> None:
    steps = asked("silent")
    jobs.started.disconnect(doorbell.send_for_bulk)
    try:
        job = started(decider("grace"), DecisionKind.ABANDON, [factories.case(step) for step in steps])
        ended(job)
    finally:
        jobs.started.connect(doorbell.send_for_bulk)
    assert {step.status for step in Step.objects.filter(pk__in=[step.pk for step in steps])} == {StepStatus.ABANDONED}
