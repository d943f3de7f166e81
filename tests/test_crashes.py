"""Kills real workers at every named point around every kind of call, and believes only the provider's ledger.

No duplicate, no lost effect, nothing called completed that is not. A call that can be repeated or looked up never
becomes a question; an opaque one becomes exactly one, and only when cut in mid-air: after it began to send and before
its answer was noted. What was cut earlier is tried again by itself, what was cut later is committed by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkpoint.explaining.questions import Cut
from checkpoint.models import Evidence, Step, Workflow
from checkpoint.states import CaseReason, StepStatus, WorkflowStatus
from tests.effects import ALL, KEYED_LOOKED_UP, OPAQUE, QUERYABLE, EffectKind
from tests.rig import Rig
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.slow

EXECUTE_POINTS = (
    "before_commit/claim_execute",
    "after_commit/claim_execute",
    "before_call/execute",
    "after_call/execute",
    "before_commit/record_execute",
    "after_commit/record_execute",
)
VERIFY_POINTS = (
    "before_call/verify",
    "after_call/verify",
    "before_commit/record_verify",
    "after_commit/record_verify",
)
INSPECT_POINTS = (
    "before_commit/claim_inspect",
    "after_commit/claim_inspect",
    "before_call/inspect",
    "after_call/inspect",
    "before_commit/record_inspect",
    "after_commit/record_inspect",
)
# What the flight recorder knows of an opaque call that is cut off.
TOLD = {
    "before_commit/claim_execute": [],
    "after_commit/claim_execute": ["never_sent"],
    "before_call/execute": ["never_sent"],
    "after_call/execute": ["receipt"],
    "before_commit/record_execute": ["receipt"],
    "after_commit/record_execute": [],
}


@pytest.fixture(scope="module")
def running(rig: Rig) -> Rig:
    rig.worker(processes=2)
    return rig


@pytest.fixture(autouse=True)
def calm(running: Rig) -> Iterator[None]:
    """Each test starts with two live processes, no fault and no plan."""
    running.started[0].wait_whole()
    yield
    running.crash.clear()
    running.sandbox.clear()


def crash_at(rig: Rig, kind: EffectKind, point: str) -> Workflow:
    rig.crash.set(point, kind.name)
    workflow = rig.submit(kind.step(rig.sandbox), _following(rig))
    wait_for(rig.crash.happened, 20)
    return rig.rest(workflow)


def _following(rig: Rig) -> dict[str, object]:
    """A second step: what was cut before it must be settled before it runs."""
    return {**KEYED_LOOKED_UP.step(rig.sandbox), "name": "following"}


def assert_done_once(rig: Rig, workflow: Workflow, kind: EffectKind) -> None:
    assert workflow.status == WorkflowStatus.COMPLETED
    assert rig.cases(workflow) == []
    for name, effect in ((kind.name, kind), ("following", KEYED_LOOKED_UP)):
        assert effect.count(rig.sandbox, rig.step(workflow, name)) == 1


def flight_findings(step: Step) -> list[str]:
    return [told.finding for told in Evidence.objects.filter(step=step, kind="flight_record")]


def assert_one_question(rig: Rig, workflow: Workflow, *, effects: int) -> None:
    assert workflow.status == WorkflowStatus.NEEDS_REVIEW
    (case,) = rig.cases(workflow)
    assert case.reason == CaseReason.OUTCOME_UNKNOWN
    assert Cut.WHILE_SENDING in case.sentence
    assert flight_findings(case.step) == ["sending"]
    assert case.step.status == StepStatus.UNCERTAIN
    assert OPAQUE.count(rig.sandbox, case.step) == effects
    assert rig.step(workflow, "following").status == StepStatus.PREPARED


@pytest.mark.parametrize("point", EXECUTE_POINTS)
@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not OPAQUE], ids=lambda kind: kind.name)
def test_a_worker_killed_around_an_execution_leaves_exactly_one_effect_and_no_question(
    running: Rig, kind: EffectKind, point: str
) -> None:
    assert_done_once(running, crash_at(running, kind, point), kind)


@pytest.mark.parametrize("point", EXECUTE_POINTS)
def test_an_opaque_call_that_is_not_cut_in_mid_air_becomes_no_question(running: Rig, point: str) -> None:
    workflow = crash_at(running, OPAQUE, point)
    assert_done_once(running, workflow, OPAQUE)
    told = flight_findings(running.step(workflow, OPAQUE.name))
    # On a machine so slow that the call's deadline passes before its first byte, the answer is that refusal.
    assert told in (TOLD[point], ["refused"])


def test_an_opaque_call_that_is_cut_as_its_first_byte_goes_out_becomes_one_question(running: Rig) -> None:
    workflow = crash_at(running, OPAQUE, "call/sending")
    assert_one_question(running, workflow, effects=0)


@pytest.mark.parametrize("point", VERIFY_POINTS)
@pytest.mark.parametrize("kind", [KEYED_LOOKED_UP, QUERYABLE], ids=lambda kind: kind.name)
def test_a_worker_killed_around_a_verification_verifies_again(running: Rig, kind: EffectKind, point: str) -> None:
    workflow = crash_at(running, kind, point)
    assert_done_once(running, workflow, kind)
    assert running.step(workflow, kind.name).attempt_count == 1


@pytest.mark.parametrize("point", INSPECT_POINTS)
@pytest.mark.parametrize("kind", [KEYED_LOOKED_UP, QUERYABLE], ids=lambda kind: kind.name)
def test_a_worker_killed_around_an_inspection_inspects_again(running: Rig, kind: EffectKind, point: str) -> None:
    running.sandbox.fault("drop_after_work", kind.path)
    workflow = crash_at(running, kind, point)
    assert_done_once(running, workflow, kind)
    assert running.step(workflow, kind.name).attempt_count == 1


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_a_worker_killed_in_mid_air_after_the_provider_did_the_work(running: Rig, kind: EffectKind) -> None:
    running.sandbox.fault("hold", kind.path)
    workflow = running.submit(kind.step(running.sandbox), _following(running))
    running.sandbox.wait_held()
    running.started[0].kill_process(running.holder(workflow, kind.name).pid)
    rested = running.rest(workflow)
    if kind is OPAQUE:
        assert_one_question(running, rested, effects=1)
    else:
        assert_done_once(running, rested, kind)
