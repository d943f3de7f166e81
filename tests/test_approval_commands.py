"""Requests for approval on the command line: `answer`, and what `explain` and `submit --wait` say about them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Decision
from checkpoint.explaining.waiting import follow
from checkpoint.models import Approval, AuditEntry
from checkpoint.rows.workflow_records import load
from checkpoint.short_ids import short
from checkpoint.states import ApprovalStatus, WorkflowStatus
from tests import factories
from tests.approval_driver import answer as answer_request
from tests.approval_driver import approver, in_force, pending, requested, status
from tests.journal_driver import KEYED, JournalDriver, effect, submit
from tests.test_commands import Ended, run

pytestmark = pytest.mark.usefixtures("database")


def answer(approval: Approval, kind: str, person: User, *, reason: str = "checked", **options: Any) -> Ended:
    return run("answer", short(approval.pk), kind, reason=reason, user=person.get_username(), **options)


def test_answer_shows_the_request_and_answers_exactly_that() -> None:
    workflow, driver = requested(effect(customer="acme", cents=7))
    ended = answer(pending(workflow), "approve", approver())
    for shown in (
        "May this run? 1 step", "step effect: effect@1, to undo it: irreversible",
        'arguments: {"cents":7,"customer":"acme","urgent":false}', "why it is asked: “rule 0” sets",
        "who must allow it: 1 of Approver", "Answered: approve, by ann. 1 of 1 have approved; it is approved.",
    ):  # fmt: skip
        assert shown in ended.out, shown
    assert (ended.code, Decision.objects.get().channel) == (0, "command")
    driver.claim()


def test_the_same_answer_again_is_the_same_and_another_persons_comes_too_late() -> None:
    workflow, _ = requested()
    approval, ann = pending(workflow), approver("ann")
    assert [answer(approval, "approve", ann).code for _ in range(2)] == [0, 0]
    late = answer(approval, "reject", approver("bob"))
    assert (late.code, "ann answered “approve”" in late.err) == (3, True)
    assert Decision.objects.count() == 1


def test_one_of_two_is_said() -> None:
    workflow, _ = requested(needed=2)
    ended = answer(pending(workflow), "approve", approver())
    assert "1 of 2 have approved; it is pending." in ended.out


def test_who_may_not_answer_gets_one_line_and_it_is_recorded() -> None:
    person = approver(groups=("Approver", "Agent"))
    workflow, _ = requested(user=person)
    refused = answer(pending(workflow), "approve", person)
    assert (refused.code, "asked for themselves" in refused.err) == (1, True)
    stranger = answer(pending(workflow), "approve", approver("eve", team="Other"))
    assert (stranger.code, "There is no request" in stranger.err) == (1, True)
    assert {entry.actor for entry in AuditEntry.objects.filter(verb="deny")} == {"ann", "eve"}
    assert not Decision.objects.exists()


def test_rejecting_and_taking_back_end_the_workflow() -> None:
    first, _ = requested()
    assert "it is rejected" in answer(pending(first), "reject", approver()).out
    second = submit(KEYED)
    JournalDriver().turn()
    admin = factories.person("adam", groups=["Admin"])
    assert "Withdrawn, by adam." in answer(pending(second), "withdraw", admin).out
    assert {status(first), status(second)} == {WorkflowStatus.ABANDONED}


def test_a_plan_is_shown_whole() -> None:
    workflow, _ = requested(effect("one"), effect("two", customer={"$result": "one#/operation_id"}), scope="plan")
    ended = answer(pending(workflow), "approve", approver())
    for shown in ("May this run? 2 steps", "step one:", "step two:", "arguments as planned:", "one#/operation_id"):
        assert shown in ended.out, shown
    assert set(Approval.objects.values_list("status", flat=True)) == {ApprovalStatus.APPROVED}


def test_explain_tells_of_open_requests_and_of_what_is_allowed() -> None:
    workflow, _ = requested(needed=2, wait_seconds=300)
    approval = pending(workflow)
    told = run("explain", str(workflow.pk)).out
    for shown in (
        "awaiting approval", "1 request for approval is open.", f"approval …{short(approval.pk)}: 2 of Approver",
        "answers: approve, reject, request_changes, withdraw", "next: people say whether it may run",
    ):  # fmt: skip
        assert shown in told, shown
    for name in ("ann", "bob"):
        answer_request(approval, approver(name))
    told = run("explain", str(workflow.pk)).out
    assert "it may run, until" in told
    assert "next: it is executed, not before" in told
    found = json.loads(run("explain", str(workflow.pk), json=True).out)["steps"][0]["request"]
    assert (found["id"], found["status"]) == (str(approval.pk), "approved")


def test_explain_names_a_plans_request_at_every_step() -> None:
    workflow, _ = requested(effect("one"), effect("two", cents=2), scope="plan")
    told = run("explain", str(workflow.pk)).out
    assert told.count(f"approval …{short(pending(workflow).pk)}: 1 of Approver must allow it for the whole plan") == 2
    assert "1 request for approval is open." in told


def test_explain_counts_with_the_budgets_of_the_steps_own_rules() -> None:
    in_force({"when": {"if": "arguments.cents > 1"}, "set": {"budgets": {"max_inspections": 1}}})
    workflow = submit(KEYED, effect("large", cents=2) | {"position": 1}, effect("small") | {"position": 1})
    budgets = {workflow.steps.get(pk=pk).name: found.max_inspections for pk, found in load(workflow).budgets.items()}
    assert budgets == {"large": 1, "small": 5}


def test_who_follows_a_workflow_hears_once_what_is_asked() -> None:
    workflow, _ = requested()
    told = [change.line for change in follow(workflow.pk, seconds=1, until={WorkflowStatus.AWAITING_APPROVAL})]
    asked = f"step effect: may it run? `manage.py answer {short(pending(workflow).pk)} approve|reject --reason …`"
    assert told == [asked, "workflow: awaiting approval"]
