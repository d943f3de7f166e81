"""One request for a whole plan: the strictest rule governs, each step uses its own share, changes are asked anew."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError

from approvals.withdrawals import withdraw
from checkpoint.errors import ApprovalClosed, StaleView
from checkpoint.models import Approval, AuditEntry, Workflow
from checkpoint.outcomes import Receipt
from checkpoint.states import ApprovalStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.approval_driver import answer, approver, ask, in_force, pending, requested, status
from tests.journal_driver import KEYED, JournalDriver, effect, submit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

A = ApprovalStatus
THREE = [effect("one"), effect("two", cents=2), effect("three", cents=3)]
WITH_RESULT = [effect("one"), effect("two", customer={"$result": "one#/operation_id"})]
PLAN = {"scope": "plan", "needed": 1}


def planned(*steps: dict[str, Any], **approval: Any) -> tuple[Workflow, JournalDriver]:
    """A workflow whose plan is asked about."""
    return requested(*(steps or THREE), scope="plan", **approval)


def shares(workflow: Workflow) -> dict[str, str]:
    """The state of each step's newest share."""
    return dict(Approval.objects.filter(workflow=workflow).order_by("id").values_list("step__name", "status"))


def run(driver: JournalDriver, *, most: int = 10) -> list[str]:
    """Runs what may run, and says what that was."""
    ran: list[str] = []
    claims = driver.turn()
    while claims and len(ran) < most:
        ran.append(claims[0].step_name)
        claims = driver.report(claims[0], Receipt(operation_id=f"op-{claims[0].step_name}"))
    return ran


def test_one_request_covers_every_step_and_one_answer_lets_them_all_run() -> None:
    workflow, driver = planned()
    request = pending(workflow)
    assert Approval.objects.filter(part_of=request).count() == 2
    assert status(workflow) == WorkflowStatus.AWAITING_APPROVAL
    answer(request, approver())
    assert shares(workflow) == dict.fromkeys(["one", "two", "three"], A.APPROVED)
    assert run(driver) == ["one", "two", "three"]
    assert shares(workflow) == dict.fromkeys(["one", "two", "three"], A.CONSUMED)
    assert (status(workflow), Approval.objects.count()) == (WorkflowStatus.COMPLETED, 3)


def test_each_step_uses_its_own_share() -> None:
    workflow, driver = planned()
    answer(pending(workflow), approver())
    (claim,) = driver.turn()
    assert shares(workflow) == {"one": A.CONSUMED, "two": A.APPROVED, "three": A.APPROVED}
    driver.report(claim, Receipt())
    assert shares(workflow) == {"one": A.CONSUMED, "two": A.CONSUMED, "three": A.APPROVED}


def test_a_template_that_waits_for_a_result_is_allowed_as_it_is_planned() -> None:
    workflow, driver = planned(*WITH_RESULT)
    answer(pending(workflow), approver())
    assert run(driver) == ["one", "two"]
    assert Approval.objects.count() == 2


def test_only_steps_that_the_policy_puts_under_the_plan_are_covered_and_the_strictest_rule_governs() -> None:
    in_force(
        {"set": {"approval": {**PLAN, "expires_seconds": 500}}},
        {"when": {"if": "arguments.cents == 2"}, "set": {"approval": {"needed": 2}}},
        {"when": {"if": "arguments.cents == 3"}, "set": {"approval": {"scope": "step"}}},
    )
    workflow, driver = submit(KEYED, *THREE), JournalDriver()
    assert driver.turn() == []
    request = pending(workflow)
    assert (request.rule["needed"], request.rule["expires_seconds"]) == (2, 500)
    for name in ("ann", "bob"):
        answer(request, approver(name))
    assert run(driver) == ["one", "two"]
    assert pending(workflow).step.name == "three"
    assert pending(workflow).plan_hash == ""


def test_steps_side_by_side_are_asked_about_once() -> None:
    workflow, driver = planned(
        effect("left") | {"position": 1}, effect("right", cents=2) | {"position": 1}, effect("after") | {"position": 2}
    )
    request = pending(workflow)
    assert Approval.objects.count() == 3
    answer(request, approver())
    assert {claim.step_name for claim in driver.turn()} == {"left", "right"}


@pytest.mark.parametrize("kind", [DecisionKind.REJECT, None], ids=["rejected", "withdrawn"])
def test_what_is_not_allowed_ends_with_all_of_its_plan(kind: DecisionKind | None) -> None:
    workflow, driver = planned()
    if kind is not None:
        answer(pending(workflow), approver(), kind)
    else:
        admin = factories.person("adam", groups=["Admin"])
        withdraw(approval_id=pending(workflow).pk, person=admin, channel="command", reason="not now")
    assert driver.turn() == []
    ended = A.REJECTED if kind else A.WITHDRAWN
    assert (set(shares(workflow).values()), status(workflow)) == ({ended}, WorkflowStatus.ABANDONED)


def test_what_is_left_of_an_approved_plan_can_be_withdrawn_and_what_happened_stays() -> None:
    workflow, driver = planned()
    request = pending(workflow)
    answer(request, approver())
    (claim,) = driver.turn()
    admin = factories.person("adam", groups=["Admin"])
    withdraw(approval_id=request.pk, person=admin, channel="command", reason="stop")
    assert driver.report(claim, Receipt()) == []
    assert shares(workflow) == {"one": A.CONSUMED, "two": A.WITHDRAWN, "three": A.WITHDRAWN}
    assert status(workflow) == WorkflowStatus.ABANDONED
    again = withdraw(approval_id=request.pk, person=admin, channel="command", reason="stop")
    assert again.status == A.CONSUMED


def test_s12_what_is_left_of_a_plan_is_asked_anew_where_the_policy_changed() -> None:
    workflow, driver = planned()
    first = pending(workflow)
    answer(first, approver("ann"))
    (claim,) = driver.turn()
    ask(**PLAN, groups=["Admin"])
    assert driver.report(claim, Receipt()) == []
    assert shares(workflow) == {"one": A.CONSUMED, "two": A.PENDING, "three": A.PENDING}
    second = pending(workflow)
    assert second.shown_hash != first.shown_hash
    answer(second, approver("adam", groups=("Admin", "Approver")))
    assert run(driver) == ["two", "three"]


def test_a_change_that_the_policy_lets_pass_is_not_asked_again() -> None:
    in_force({"set": {"approval": PLAN, "drift": {"policy": "continue"}}})
    workflow, driver = submit(KEYED, *THREE), JournalDriver()
    assert driver.turn() == []
    answer(pending(workflow), approver())
    in_force({"set": {"approval": PLAN, "drift": {"policy": "continue"}}})
    assert run(driver) == ["one", "two", "three"]


def test_s13_what_is_left_of_a_plan_past_its_time_is_asked_anew(time_machine: MovableTime) -> None:
    workflow, driver = planned(expires_seconds=60)
    answer(pending(workflow), approver())
    (claim,) = driver.turn()
    time_machine.pass_seconds(61)
    assert driver.report(claim, Receipt()) == []
    assert shares(workflow) == {"one": A.CONSUMED, "two": A.PENDING, "three": A.PENDING}


def test_an_unanswered_plan_that_escalates_asks_the_other_groups_about_all_of_it(time_machine: MovableTime) -> None:
    workflow, driver = planned(expires_seconds=60, on_timeout="escalate", escalate_to=["Admin"])
    time_machine.pass_seconds(61)
    assert driver.turn() == []
    assert pending(workflow).rule["groups"] == ["Admin"]
    assert shares(workflow) == dict.fromkeys(["one", "two", "three"], A.PENDING)


def test_s15_an_answer_about_a_plan_names_all_that_it_allows() -> None:
    workflow, _ = planned()
    request = pending(workflow)
    with pytest.raises(StaleView):
        answer(request, approver("ann"), arguments_hash=request.arguments_hash)
    share = Approval.objects.filter(part_of=request).first()
    assert share is not None
    answer(share, approver("bob"))
    request.refresh_from_db()
    assert (request.status, request.decisions.get().person_name) == (A.APPROVED, "bob")


def test_the_audit_names_the_request_once() -> None:
    planned()
    (entry,) = AuditEntry.objects.filter(verb="request_approval")
    assert '"steps":3' in entry.text


def test_which_shares_belong_together_is_written_once() -> None:
    workflow, _ = planned()
    request = pending(workflow)
    with pytest.raises(IntegrityError, match="plan_is_fixed"):
        Approval.objects.filter(part_of=request).update(part_of=None)
    with pytest.raises(IntegrityError, match="plan_is_fixed"):
        Approval.objects.filter(pk=request.pk).update(plan_hash="0" * 64)


def test_a_request_that_ended_cannot_be_withdrawn() -> None:
    workflow, _ = planned()
    request = pending(workflow)
    answer(request, approver(), DecisionKind.REJECT)
    with pytest.raises(ApprovalClosed, match="ann answered “reject”"):
        withdraw(approval_id=request.pk, person=factories.person("adam", groups=["Admin"]), channel="x", reason="late")
