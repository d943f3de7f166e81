"""Approvals at dispatch, on the real journal and database: asked for, bound to what is sent, used once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals.models import Decision
from approvals.rules.policy_errors import PolicyInvalid
from approvals.withdrawals import withdraw
from checkpoint import clock, transitions
from checkpoint.errors import ApprovalClosed, Conflict, Forbidden, NotFound, StaleView
from checkpoint.gates.rulings import ApprovalRule, OnTimeout
from checkpoint.models import Approval, AuditEntry, PolicyVersion, Workflow
from checkpoint.outcomes import Receipt, Refused, Visible
from checkpoint.people import ENGINE
from checkpoint.rows import step_rows
from checkpoint.states import ApprovalStatus, CaseReason, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.transactions import one_transaction
from checkpoint.turns.calls import Claim, Report
from checkpoint.turns.verdicts import conclude_verified
from checkpoint.workflows import abandon
from tests import factories
from tests.approval_driver import answer, approver, ask, in_force, pending, requested, status
from tests.journal_driver import KEYED, OPAQUE, VERIFIABLE, JournalDriver, case, effect, step, submit
from tests.journal_driver import answer as decide_case
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


def test_s22_waiting_for_approval_has_exactly_one_open_request() -> None:
    workflow, driver = requested()
    assert status(workflow) == WorkflowStatus.AWAITING_APPROVAL
    approval = pending(workflow)
    assert approval.arguments_hash == step(workflow).arguments_hash
    for _ in range(3):
        assert driver.turn() == []
    assert Approval.objects.count() == 1


def test_an_approved_step_runs_and_the_approval_is_used_up_by_its_start() -> None:
    workflow, driver = requested()
    approval = pending(workflow)
    answer(approval, approver())
    claim = driver.claim()
    approval.refresh_from_db()
    assert (approval.status, step(workflow).status) == (ApprovalStatus.CONSUMED, StepStatus.STARTED)
    driver.report(claim, Receipt())
    assert status(workflow) == WorkflowStatus.COMPLETED


def test_s01_a_step_that_needs_two_people_does_not_run_until_both_have_answered() -> None:
    workflow, driver = requested(needed=2)
    answer(pending(workflow), approver("ann"))
    assert driver.turn() == []
    assert pending(workflow).decisions.count() == 1
    answer(pending(workflow), approver("bob"))
    driver.claim()


def test_one_person_counts_once() -> None:
    workflow, driver = requested(needed=2)
    ann = approver()
    assert answer(pending(workflow), ann) == answer(pending(workflow), ann)
    with pytest.raises(Forbidden):
        answer(pending(workflow), ann, DecisionKind.REJECT)
    assert driver.turn() == []


def test_a_rejected_step_never_runs_and_what_follows_ends() -> None:
    workflow, driver = requested()
    answer(pending(workflow), approver(), DecisionKind.REJECT)
    assert (status(workflow), step(workflow).status) == (WorkflowStatus.ABANDONED, StepStatus.ABANDONED)
    assert driver.turn() == []


def test_s13_an_answer_past_the_expiry_is_refused_and_nothing_starts(time_machine: MovableTime) -> None:
    workflow, driver = requested(expires_seconds=60)
    approval = pending(workflow)
    time_machine.pass_seconds(61)
    with pytest.raises(ApprovalClosed, match="time was over"):
        answer(approval, approver())
    assert driver.turn() == []
    approval.refresh_from_db()
    assert (approval.status, status(workflow)) == (ApprovalStatus.EXPIRED, WorkflowStatus.ABANDONED)


def test_an_unanswered_request_that_escalates_is_asked_anew(time_machine: MovableTime) -> None:
    workflow, driver = requested(expires_seconds=60, on_timeout="escalate", escalate_to=["Admin"])
    time_machine.pass_seconds(61)
    assert driver.turn() == []
    assert Approval.objects.filter(status="expired").count() == 1
    assert pending(workflow).expires_at > pending(workflow).requested_at
    assert status(workflow) == WorkflowStatus.AWAITING_APPROVAL


def test_an_unanswered_request_that_rejects_ends_as_rejected(time_machine: MovableTime) -> None:
    workflow, driver = requested(expires_seconds=60, on_timeout="reject")
    time_machine.pass_seconds(61)
    assert driver.turn() == []
    assert (Approval.objects.get().status, status(workflow)) == (ApprovalStatus.REJECTED, WorkflowStatus.ABANDONED)


SILENCE = {
    "when": {"reversibility": ["none_needed", "compensable"]},
    "set": {"approval": {"expires_seconds": 60, "on_timeout": "approve"}},
}


def test_silence_allows_what_can_be_undone_where_the_policy_says_so(time_machine: MovableTime) -> None:
    in_force(SILENCE)
    workflow, driver = submit(KEYED), JournalDriver()
    assert driver.turn() == []
    time_machine.pass_seconds(61)
    driver.claim()
    approval = Approval.objects.get(workflow=workflow)
    assert (approval.status, approval.closing) == (ApprovalStatus.CONSUMED, "nobody answered in time")


def test_silence_never_allows_what_cannot_be_undone(time_machine: MovableTime) -> None:
    """The policy language refuses such a rule; a request that holds it all the same is not obeyed."""
    with pytest.raises(PolicyInvalid, match="only allowed for what can be undone"):
        ask(on_timeout="approve")
    version = ask()
    workflow, driver = submit(OPAQUE), JournalDriver()
    about, now = step(workflow), clock.now()
    Approval.objects.create(
        workflow=workflow, step=about, rule=ApprovalRule(on_timeout=OnTimeout.APPROVE).to_json(), requested_at=now,
        arguments_hash=about.arguments_hash, policy_version=version, tool_version=about.tool_version, expires_at=now,
    )  # fmt: skip
    time_machine.pass_seconds(1)
    assert driver.turn() == []
    assert (Approval.objects.get().status, status(workflow)) == (ApprovalStatus.EXPIRED, WorkflowStatus.ABANDONED)


def test_under_a_policy_that_cannot_be_read_nothing_starts_and_what_runs_is_recorded() -> None:
    running, driver = submit(VERIFIABLE), JournalDriver()
    claim = driver.claim()
    newest = PolicyVersion.objects.latest("number")
    PolicyVersion.objects.create(number=newest.number + 1, sha256="", rules={"rules": [{}]}, reason="x", author="eve")
    waiting = submit(OPAQUE)
    (verification,) = driver.report(claim, Receipt())
    driver.report(verification, Visible())
    assert (status(running), status(waiting)) == (WorkflowStatus.COMPLETED, WorkflowStatus.PLANNED)
    assert driver.turn() == []


def test_s13_an_approval_that_expired_before_its_use_is_asked_again(time_machine: MovableTime) -> None:
    workflow, driver = requested(expires_seconds=60)
    first = pending(workflow)
    answer(first, approver())
    time_machine.pass_seconds(61)
    assert driver.turn() == []
    first.refresh_from_db()
    assert (first.status, pending(workflow).pk != first.pk) == (ApprovalStatus.EXPIRED, True)


def test_s12_a_policy_that_changed_after_the_approval_asks_again() -> None:
    workflow, driver = requested()
    first = pending(workflow)
    answer(first, approver())
    ask(needed=2)
    assert driver.turn() == []
    first.refresh_from_db()
    assert first.status == ApprovalStatus.SUPERSEDED
    assert pending(workflow).rule["needed"] == 2


def test_the_wait_may_be_longer_than_the_time_for_the_answer(time_machine: MovableTime) -> None:
    workflow, driver = requested(wait_seconds=100, expires_seconds=60)
    answer(pending(workflow), approver())
    time_machine.pass_seconds(101)
    driver.claim()


def test_the_wait_after_the_last_approval_leaves_time_to_withdraw(time_machine: MovableTime) -> None:
    workflow, driver = requested(wait_seconds=30)
    approval = pending(workflow)
    answer(approval, approver())
    assert driver.turn() == []
    withdraw(
        approval_id=approval.pk, person=factories.person("adam", groups=["Admin"]), channel="command", reason="wrong"
    )
    time_machine.pass_seconds(31)
    assert driver.turn() == []
    approval.refresh_from_db()
    assert (approval.status, status(workflow)) == (ApprovalStatus.WITHDRAWN, WorkflowStatus.ABANDONED)


def test_s02_s17_a_further_send_uses_the_same_approval_while_nothing_changed(time_machine: MovableTime) -> None:
    workflow, driver = requested()
    answer(pending(workflow), approver())
    driver.report(driver.claim(), Refused("busy"))
    time_machine.pass_seconds(2)
    assert driver.claim().attempt_number == 2
    assert Approval.objects.count() == 1


def test_s15_an_answer_to_other_arguments_than_those_shown_changes_nothing() -> None:
    workflow, driver = requested()
    with pytest.raises(StaleView):
        answer(pending(workflow), approver(), arguments_hash="0" * 64)
    assert driver.turn() == []
    assert not Decision.objects.exists()


def test_s16_nobody_approves_what_they_submitted_and_the_attempt_is_on_record() -> None:
    person = approver(groups=("Approver", "Agent"))
    workflow, _ = requested(user=person)
    with pytest.raises(Forbidden, match="asked for themselves"):
        answer(pending(workflow), person)
    assert not Decision.objects.exists()
    assert AuditEntry.objects.filter(verb="deny", actor="ann").count() == 1


@pytest.mark.parametrize(
    ("groups", "teams", "refusal"),
    [
        (["Operator"], ["Default"], Forbidden),
        (["Approver"], ["Other"], NotFound),
        ([], ["Default"], Forbidden),
    ],
    ids=["without the right", "of another team", "of no group"],
)
def test_who_may_not_answer(groups: list[str], teams: list[str], refusal: type[Exception]) -> None:
    workflow, driver = requested()
    person = factories.person("max", groups=groups, teams=[factories.team(name) for name in teams])
    with pytest.raises(refusal):
        answer(pending(workflow), person)
    assert driver.turn() == []


def test_a_group_that_the_policy_names_is_needed() -> None:
    workflow, _ = requested(groups=["Auditor"])
    with pytest.raises(Forbidden, match="Auditor"):
        answer(pending(workflow), approver())


def test_s19_of_fifty_people_who_press_at_once_one_counts() -> None:
    workflow, driver = requested()
    approval = pending(workflow)
    people = [approver(f"person{n}") for n in range(50)]
    barrier, counted, refused = threading.Barrier(50), list[Decision](), list[Conflict]()

    def press(person: User) -> None:
        barrier.wait()
        try:
            counted.append(answer(approval, person))
        except Conflict as refusal:
            refused.append(refusal)
        connections.close_all()

    threads = [threading.Thread(target=press, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(counted), len(refused), Decision.objects.count()) == (1, 49, 1)
    claims: list[Claim] = driver.turn()
    assert len(claims) == 1


def test_s10_an_answer_to_one_step_moves_no_other() -> None:
    first, driver = requested()
    second = submit(OPAQUE)
    assert driver.turn() == []
    answer(pending(first), approver())
    assert driver.claim().workflow_id == first.pk
    assert status(second) == WorkflowStatus.AWAITING_APPROVAL


def test_a_step_has_the_budgets_of_the_rules_that_apply_to_it(time_machine: MovableTime) -> None:
    in_force({"when": {"if": "arguments.cents > 1"}, "set": {"budgets": {"max_attempts": 1}}}, max_attempts=2)
    small, large, driver = submit(KEYED), submit(KEYED, effect(cents=2)), JournalDriver()
    assert (step(small).attempts_allowed, step(large).attempts_allowed) == (2, 1)
    driver.turn(*(Report(claim, Refused("busy")) for claim in driver.turn()))
    time_machine.pass_seconds(2)
    assert {claim.workflow_id for claim in driver.turn()} == {small.pk}
    assert status(large) == WorkflowStatus.NEEDS_REVIEW


def test_a_step_whose_arguments_come_from_a_result_gets_its_budgets_with_them() -> None:
    in_force({"when": {"if": "arguments.customer == 'globex'"}, "set": {"budgets": {"max_attempts": 7}}})
    workflow = submit(KEYED, effect("one"), effect("two", customer={"$result": "one#/operation_id"}))
    driver = JournalDriver()
    driver.report(driver.claim(), Receipt(operation_id="globex"))
    assert (step(workflow, "one").attempts_allowed, step(workflow, "two").attempts_allowed) == (3, 7)


def test_a_policy_that_asks_nothing_any_more_closes_what_is_asked_and_lets_it_run() -> None:
    workflow, driver = requested()
    in_force()
    driver.report(driver.claim(), Receipt())
    assert (Approval.objects.get().status, status(workflow)) == (ApprovalStatus.SUPERSEDED, WorkflowStatus.COMPLETED)


def test_beside_a_step_that_runs_a_request_closes_too_when_the_policy_asks_nothing_any_more() -> None:
    in_force({"when": {"if": "arguments.cents > 1"}, "set": {"approval": {"needed": 1}}})
    workflow = submit(KEYED, effect("free") | {"position": 1}, effect("asked", cents=2) | {"position": 1})
    driver = JournalDriver()
    (free,) = driver.turn()
    in_force()
    (asked,) = driver.turn()
    assert (asked.step_name, Approval.objects.get().status) == ("asked", ApprovalStatus.SUPERSEDED)
    driver.turn(Report(free, Receipt()), Report(asked, Receipt()))
    assert status(workflow) == WorkflowStatus.COMPLETED


def test_s22_nobody_is_asked_about_what_has_ended() -> None:
    """However a request was left behind: here, by one who read before it was there."""
    workflow, driver = submit(VERIFIABLE), JournalDriver()
    driver.report(driver.claim(), Receipt())
    about, now = step(workflow), clock.now()
    approval = Approval.objects.create(
        workflow=workflow, step=about, rule=ApprovalRule().to_json(), requested_at=now, expires_at=now,
        arguments_hash=about.arguments_hash, policy_version=ask(), tool_version=about.tool_version,
    )  # fmt: skip

    @one_transaction
    def verify() -> None:
        changes = transitions.lock([workflow.pk], actor=ENGINE)
        changes.workflows[workflow.pk].open_requests = False
        conclude_verified(changes, step_rows.of_ids([about.pk])[about.pk])
        changes.finish()

    verify()
    approval.refresh_from_db()
    assert (approval.status, status(workflow)) == (ApprovalStatus.SUPERSEDED, WorkflowStatus.COMPLETED)


def test_a_policy_that_asks_others_asks_them_at_once() -> None:
    workflow, driver = requested()
    first = pending(workflow)
    ask(groups=["Admin"])
    assert driver.turn() == []
    assert (pending(workflow).pk != first.pk, pending(workflow).rule["groups"]) == (True, ["Admin"])
    with pytest.raises(ApprovalClosed, match="superseded"):
        answer(first, approver())


def test_the_requester_takes_the_request_back_and_a_second_press_changes_nothing() -> None:
    agent = approver("agent", groups=("Agent",))
    workflow, _ = requested(user=agent)
    approval = pending(workflow)
    with pytest.raises(Forbidden, match="Only who submitted"):
        withdraw(approval_id=approval.pk, person=approver(), channel="console", reason="wrong customer")
    for _ in range(2):
        withdraw(approval_id=approval.pk, person=agent, channel="console", reason="wrong customer")
    approval.refresh_from_db()
    assert (approval.status, approval.closing) == ("withdrawn", "withdrawn by agent: wrong customer")
    assert AuditEntry.objects.filter(verb="withdraw", stream_id=workflow.pk).count() == 1
    with pytest.raises(ApprovalClosed, match="withdrawn by agent: wrong customer"):
        answer(approval, approver("bob"))


def sent_and_asked_again(time_machine: MovableTime, **rule: Any) -> tuple[Workflow, JournalDriver, Claim]:
    """A step whose call was lost; before it is sent again with its key, a policy came into force that asks."""
    workflow, driver = submit(KEYED), JournalDriver()
    claim = driver.claim()
    ask(**rule)
    time_machine.pass_seconds(120)
    assert JournalDriver().turn() == []
    assert (step(workflow).status, pending(workflow).step.name) == (StepStatus.STARTED, "effect")
    return workflow, driver, claim


@pytest.mark.parametrize("ended", ["rejected", "withdrawn", "unanswered"])
def test_what_was_sent_and_may_not_be_sent_again_becomes_a_question(time_machine: MovableTime, ended: str) -> None:
    """The first call may have taken effect: nobody may conclude that it did not."""
    workflow, driver, _ = sent_and_asked_again(time_machine, expires_seconds=60)
    if ended == "rejected":
        answer(pending(workflow), approver(), DecisionKind.REJECT)
    elif ended == "withdrawn":
        admin = factories.person("adam", groups=["Admin"])
        withdraw(approval_id=pending(workflow).pk, person=admin, channel="command", reason="stop")
    else:
        time_machine.pass_seconds(61)
        assert driver.turn() == []
    asked = case(workflow)
    assert (step(workflow).status, asked.reason) == (StepStatus.UNCERTAIN, CaseReason.OUTCOME_UNKNOWN)
    assert any("may not be sent again" in line for line in asked.findings["known"])
    decide_case(asked, DecisionKind.RETRY)
    assert status(workflow) == WorkflowStatus.ABANDONED


def test_in_an_abandoned_workflow_a_person_still_says_what_happened(time_machine: MovableTime) -> None:
    workflow, driver, _ = sent_and_asked_again(time_machine, expires_seconds=60)
    abandon(workflow_id=workflow.pk, actor=ENGINE, user=None, reason="not wanted any more")
    assert driver.turn() == []
    time_machine.pass_seconds(61)
    assert driver.turn() == []
    decide_case(case(workflow), DecisionKind.CONFIRM)
    assert driver.turn() == []
    assert (status(workflow), step(workflow).status) == (WorkflowStatus.ABANDONED, StepStatus.VERIFIED)


def test_an_outcome_that_comes_late_closes_the_request_for_another_send(time_machine: MovableTime) -> None:
    workflow, driver, claim = sent_and_asked_again(time_machine)
    driver.report(claim, Receipt())
    JournalDriver().turn()
    assert Approval.objects.get().status == ApprovalStatus.WITHDRAWN
    assert status(workflow) == WorkflowStatus.COMPLETED
