"""A step that goes on, by whichever way, closes what people were asked about it (S22, S30)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from approvals.casework import assignments, snoozes
from approvals.decisions import decide
from approvals.models import Decision, Signature
from checkpoint import audit, workflows
from checkpoint.models import Approval, Case, Step, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt, Refused
from checkpoint.people import Actor
from checkpoint.states import ApprovalStatus, CaseReason, CaseStatus, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.case_driver import put_in_force, worker
from tests.journal_driver import OPAQUE, JournalDriver, answer, case, step, submit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

ASK = {"name": "ask", "set": {"approval": {"needed": 1}}}
FOUR_EYES = {"name": "two", "set": {"decisions": {"outcome_unknown": {"confirm": {"needed": 2}, "retry": {}}}}}


def approvals_of(workflow: Workflow) -> list[str]:
    return list(Approval.objects.filter(workflow=workflow).order_by("id").values_list("status", flat=True))


def looked_after(asked: Case) -> Any:
    """Somebody claims the case, signs an answer that needs two, and puts it aside."""
    ada = worker(asked)
    assignments.claim(case_id=asked.pk, person=ada, channel="command")
    seen = Step.objects.get(pk=asked.step_id)
    decide(
        case_id=asked.pk, kind=DecisionKind.CONFIRM, person=ada, channel="command", reason="seen",
        step_version=seen.version, arguments_hash=seen.arguments_hash,
    )  # fmt: skip
    snoozes.snooze(case_id=asked.pk, lasting=timedelta(hours=1), person=ada, channel="command", reason="later")
    assert Signature.objects.count() == 1
    return ada


def nobody_is_asked(asked: Case) -> None:
    asked.refresh_from_db()
    assert asked.status != CaseStatus.OPEN
    assert assignments.current(asked) is None
    assert snoozes.current(asked) is None
    assert not Approval.objects.filter(step=asked.step_id, status__in=["pending", "approved"]).exists()
    assert list(audit.broken_links()) == []


def unknown() -> tuple[Workflow, JournalDriver, Any]:
    """A workflow whose only call got no answer, so that a person is asked; and the claim of that call."""
    put_in_force({"rules": [FOUR_EYES]})
    workflow, driver = submit(OPAQUE), JournalDriver()
    claim = driver.claim()
    driver.report(claim, OutcomeUnknown("the connection broke"))
    return workflow, driver, claim


def test_a_decision_closes_all_that_was_open_about_the_step() -> None:
    workflow, _, _ = unknown()
    asked = case(workflow)
    looked_after(asked)
    answered = worker(asked, "grace")
    seen = step(workflow)
    made = decide(
        case_id=asked.pk, kind=DecisionKind.RETRY, person=answered, channel="command", reason="not there",
        step_version=seen.version, arguments_hash=seen.arguments_hash,
    )  # fmt: skip
    assert isinstance(made, Decision)
    nobody_is_asked(asked)


def test_a_late_receipt_closes_all_that_was_open_about_the_step() -> None:
    workflow, driver, claim = unknown()
    asked = case(workflow)
    looked_after(asked)
    driver.report(claim, Receipt(operation_id="op_9"))
    nobody_is_asked(asked)
    assert (asked.status, asked.closing) == (CaseStatus.SETTLED, "a late receipt settled it")


def test_s22_a_late_receipt_ends_the_request_to_send_again_that_waits_for_approval(time_machine: MovableTime) -> None:
    workflow, driver, claim = unknown()
    looked_after(case(workflow))
    seen = step(workflow)
    decide(
        case_id=case(workflow).pk, kind=DecisionKind.RETRY, person=worker(case(workflow), "grace"), channel="command",
        reason="not there", step_version=seen.version, arguments_hash=seen.arguments_hash,
    )  # fmt: skip
    put_in_force({"rules": [ASK]})
    time_machine.pass_seconds(3600)
    assert driver.turn() == []
    assert approvals_of(workflow) == [ApprovalStatus.PENDING]
    driver.report(claim, Receipt(operation_id="op_9"))
    assert approvals_of(workflow) == [ApprovalStatus.WITHDRAWN]
    nobody_is_asked(case(workflow))


def test_abandoning_by_a_decision_ends_the_unused_approval_also_while_others_are_in_the_air() -> None:
    put_in_force({"rules": [ASK]})
    workflow, driver = submit(OPAQUE), JournalDriver()
    assert driver.turn() == []
    held = Approval.objects.get(workflow=workflow)
    other = factories.step(Workflow.objects.get(pk=workflow.pk), StepStatus.STARTED, name="in_the_air")
    asked = factories.case(Step.objects.get(pk=held.step_id), CaseReason.POLICY_CHANGED)
    seen = Step.objects.get(pk=held.step_id)
    decide(
        case_id=asked.pk, kind=DecisionKind.ABANDON, person=worker(asked), channel="command", reason="not wanted",
        step_version=seen.version, arguments_hash=seen.arguments_hash,
    )  # fmt: skip
    workflow.refresh_from_db()
    other.refresh_from_db()
    assert (workflow.status, other.status) == (WorkflowStatus.EXECUTING, StepStatus.STARTED)
    assert approvals_of(workflow) == [ApprovalStatus.WITHDRAWN]
    nobody_is_asked(asked)


def test_winding_down_closes_what_was_open_about_steps_that_end_and_leaves_what_is_in_the_air() -> None:
    workflow, _, _ = unknown()
    uncertain = case(workflow)
    prepared = factories.step(Workflow.objects.get(pk=workflow.pk), StepStatus.PREPARED, name="later")
    asked = factories.case(prepared, CaseReason.TOOL_CHANGED)
    assignments.claim(case_id=asked.pk, person=worker(asked), channel="command")
    workflows.abandon(workflow_id=workflow.pk, actor=Actor("root", "command"), reason="no longer wanted")
    nobody_is_asked(asked)
    assert asked.closing == "the workflow was abandoned"
    uncertain.refresh_from_db()
    assert uncertain.status == CaseStatus.OPEN, "what did happen is still asked"


def test_that_an_effect_may_have_happened_twice_stays_a_question_whatever_becomes_of_the_step() -> None:
    workflow, driver, claim = unknown()
    twice = factories.case(step(workflow), CaseReason.DUPLICATE_EFFECT)
    driver.report(claim, Receipt(operation_id="op_9"))
    twice.refresh_from_db()
    assert twice.status == CaseStatus.OPEN


@pytest.mark.parametrize("late", [Receipt(operation_id="op_9"), Refused("no such card", "declined")])
def test_s24_what_was_decided_is_not_asked_again_whatever_comes_later(late: Any, time_machine: MovableTime) -> None:
    put_in_force({"rules": []})
    workflow, driver = submit(OPAQUE), JournalDriver()
    claim = driver.claim()
    driver.report(claim, OutcomeUnknown("the connection broke"))
    answer(case(workflow), DecisionKind.CONFIRM, operation_id="op_9")
    driver.turn()
    assert step(workflow).status == StepStatus.VERIFIED
    driver.report(claim, late)
    put_in_force({"rules": [FOUR_EYES]})
    time_machine.pass_seconds(86_400)
    assert driver.turn() == []
    assert (step(workflow).status, step(workflow).standing) == (StepStatus.VERIFIED, "attested")
    assert case(workflow).status == CaseStatus.DECIDED, "the only question that was ever asked"
    assert Decision.objects.get().kind == "confirm"
