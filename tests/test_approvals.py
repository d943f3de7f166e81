"""Approvals at dispatch, on the real journal and database: asked for, bound to what is sent, used once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals import requests
from approvals.models import Decision
from checkpoint import rulings
from checkpoint.calls import Claim
from checkpoint.errors import ApprovalClosed, Conflict, Forbidden, NotFound, StaleView
from checkpoint.models import Approval, AuditEntry, PolicyVersion, Workflow
from checkpoint.outcomes import Receipt, Refused
from checkpoint.rulings import ApprovalRule, Ruling
from checkpoint.states import ApprovalStatus, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.journal_driver import OPAQUE, JournalDriver, step, submit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def asking(database: Any) -> Iterator[None]:
    """A policy in force that asks for approval by the rule in its rules."""
    before = rulings._evaluator[0]
    rulings.use(lambda rules, description: Ruling(approval=ApprovalRule.from_json(rules["rules"][0])))
    yield
    rulings.use(before)


def ask(**rule: Any) -> None:
    """Puts a policy in force that asks every step for this."""
    newest = PolicyVersion.objects.latest("number")
    rules = {**newest.rules, "rules": [ApprovalRule(**rule).to_json()]}
    PolicyVersion.objects.create(number=newest.number + 1, sha256="", rules=rules, reason="tests", author="tests")


def approver(name: str = "ann", **more: Any) -> User:
    return factories.person(name, groups=["Approver"], teams=[factories.team("Default")], **more)


def pending(workflow: Workflow) -> Approval:
    return Approval.objects.get(workflow=workflow, status="pending")


def answer(approval: Approval, person: User, kind: DecisionKind = DecisionKind.APPROVE, **more: Any) -> Decision:
    return requests.answer(
        approval_id=approval.pk, kind=kind, person=person, channel="command",
        **{"reason": "looks right", "arguments_hash": approval.arguments_hash, **more},
    )  # fmt: skip


def requested(**rule: Any) -> tuple[Workflow, JournalDriver]:
    ask(**rule)
    workflow, driver = submit(OPAQUE), JournalDriver()
    assert driver.turn() == []
    return workflow, driver


def status(workflow: Workflow) -> WorkflowStatus:
    workflow.refresh_from_db()
    return WorkflowStatus(workflow.status)


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
    workflow, driver = requested(expires=60)
    approval = pending(workflow)
    time_machine.pass_seconds(61)
    with pytest.raises(ApprovalClosed, match="time was over"):
        answer(approval, approver())
    assert driver.turn() == []
    approval.refresh_from_db()
    assert (approval.status, status(workflow)) == (ApprovalStatus.EXPIRED, WorkflowStatus.ABANDONED)


def test_an_unanswered_request_that_escalates_is_asked_anew(time_machine: MovableTime) -> None:
    workflow, driver = requested(expires=60, on_timeout="escalate")
    time_machine.pass_seconds(61)
    assert driver.turn() == []
    assert Approval.objects.filter(status="expired").count() == 1
    assert pending(workflow).expires_at > pending(workflow).requested_at
    assert status(workflow) == WorkflowStatus.AWAITING_APPROVAL


def test_s13_an_approval_that_expired_before_its_use_is_asked_again(time_machine: MovableTime) -> None:
    workflow, driver = requested(expires=60)
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


def test_the_wait_after_the_last_approval_leaves_time_to_withdraw(time_machine: MovableTime) -> None:
    workflow, driver = requested(wait=30)
    approval = pending(workflow)
    answer(approval, approver())
    assert driver.turn() == []
    requests.withdraw(
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
    workflow, _ = requested()
    person = approver()
    Workflow.objects.filter(pk=workflow.pk).update(submitted_by=person)
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
    workflow, _ = requested(groups=("Finance",))
    with pytest.raises(Forbidden, match="Finance"):
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
