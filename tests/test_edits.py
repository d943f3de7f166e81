"""Sent back to the agent, and edited: another step takes the place, the old key is closed, and it is asked anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError

from checkpoint.edits import edit_step
from checkpoint.errors import (
    ActionIncomplete,
    AlreadyEnding,
    ApprovalClosed,
    DecisionNotAllowed,
    EditRefused,
    Forbidden,
    NotFound,
    SubmissionInvalid,
)
from checkpoint.models import Approval, Attempt, AuditEntry, Case, Intent, Step, Workflow
from checkpoint.outcomes import Receipt, Refused
from checkpoint.planning.documents import Document
from checkpoint.states import ApprovalStatus, CaseStatus, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.workflow_lists import progress_of
from tests import factories
from tests.approval_driver import answer, approver, ask, pending, requested, status
from tests.console_driver import answers, signed_in
from tests.journal_driver import KEYED, JournalDriver, effect, submit
from tests.submissions import ACTOR
from tests.test_commands import run
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

A, S = ApprovalStatus, StepStatus
SMALLER = {"customer": "acme", "cents": 2}


def edit(workflow: Workflow, arguments: Any, *, name: str = "effect", **changes: Any) -> Step:
    given = {"actor": ACTOR, "reason": "smaller", **changes}
    return edit_step(workflow_id=workflow.pk, name=name, arguments=Document.of(arguments), **given)


def send_back(workflow: Workflow, name: str = "ann") -> Approval:
    approval = pending(workflow)
    answer(approval, approver(name), DecisionKind.REQUEST_CHANGES, reason="half of it")
    approval.refresh_from_db()
    return approval


def statuses(workflow: Workflow) -> list[tuple[str, str]]:
    return list(workflow.steps.order_by("position", "id").values_list("name", "status"))


def test_what_is_sent_back_waits_for_the_agent_and_does_not_run(time_machine: MovableTime) -> None:
    workflow, driver = requested(expires_seconds=60)
    approval = send_back(workflow)
    assert (approval.status, approval.closing) == (A.RETURNED, "ann asks for changes: half of it")
    assert status(workflow) == WorkflowStatus.AWAITING_AGENT
    time_machine.pass_seconds(1000)
    assert driver.turn() == []
    assert workflow.approvals.count() == 1
    told = run("explain", str(workflow.pk)).out
    for shown in ("It waits for its agent to change a step.", "ann asks for changes: half of it", "next: its agent"):
        assert shown in told, shown


def test_an_edit_is_asked_about_anew_and_then_runs_with_its_own_key() -> None:
    workflow, driver = requested()
    first = send_back(workflow)
    edit(workflow, SMALLER)
    assert statuses(workflow) == [("effect", S.SUPERSEDED), ("effect", S.PREPARED)]
    assert driver.turn() == []
    first.refresh_from_db()
    second = pending(workflow)
    assert (first.status, status(workflow)) == (A.SUPERSEDED, WorkflowStatus.AWAITING_APPROVAL)
    assert second.arguments_hash != first.arguments_hash
    answer(second, approver("bob"))
    claim = driver.claim()
    assert json.loads(claim.arguments)["cents"] == 2
    driver.report(claim, Receipt())
    assert status(workflow) == WorkflowStatus.COMPLETED
    assert (progress_of([workflow])[workflow.pk].verified, progress_of([workflow])[workflow.pk].total) == (1, 1)
    assert "1 of 1 steps are verified." in run("explain", str(workflow.pk)).out


def test_s02_five_rounds_of_review_make_one_call() -> None:
    workflow, driver = requested()
    ann = approver()
    for cents in range(2, 6):
        answer(pending(workflow), ann, DecisionKind.REQUEST_CHANGES)
        assert driver.turn() == []
        edit(workflow, {"customer": "acme", "cents": cents})
        assert driver.turn() == []
    answer(pending(workflow), ann)
    assert driver.report(driver.claim(), Receipt()) == []
    assert (status(workflow), Attempt.objects.count()) == (WorkflowStatus.COMPLETED, 1)
    assert [json.loads(attempt.step.arguments or "")["cents"] for attempt in Attempt.objects.all()] == [5]


def test_s23_the_original_call_does_not_come_back_after_an_edit() -> None:
    workflow, driver = requested()
    original = workflow.steps.get()
    edit(workflow, SMALLER)
    with pytest.raises(EditRefused, match=r"tests put this very call aside .*: “smaller”. Its key is closed"):
        edit(workflow, {"customer": "acme", "cents": 1})
    assert Intent.objects.get(key=original.idempotency_key).owner == original
    assert driver.turn() == []
    assert [approval.step.arguments for approval in Approval.objects.filter(status="pending")] == [
        '{"cents":2,"customer":"acme","urgent":false}'
    ]


def test_s23_nor_by_way_of_a_result_that_makes_the_same_call() -> None:
    two = effect("two", customer="acme")
    workflow, driver = submit(KEYED, effect("one"), two), JournalDriver()
    edit(workflow, {"customer": {"$result": "one#/operation_id"}, "cents": 1}, name="two")
    assert driver.report(driver.claim(), Receipt(operation_id="acme")) == []
    (case,) = Case.objects.filter(workflow=workflow)
    assert (case.reason, case.step.status) == ("plan_invalid", S.PLANNED)
    assert any("put this very call aside" in line for line in case.findings["known"])


def test_an_edit_answers_what_was_asked_about_a_plan_that_could_not_go_on() -> None:
    one, two = effect("one"), effect("two", cents={"$result": "one#/operation_id"})
    workflow, driver = submit(KEYED, one, two), JournalDriver()
    driver.report(driver.claim(), Receipt(operation_id="no number"))
    assert status(workflow) == WorkflowStatus.NEEDS_REVIEW
    edit(workflow, SMALLER, name="two")
    assert Case.objects.get().status == CaseStatus.SETTLED
    (claim,) = driver.turn()
    assert claim.step_name == "two"


def test_an_open_request_ends_with_its_step() -> None:
    workflow, driver = requested()
    first = pending(workflow)
    edit(workflow, SMALLER)
    with pytest.raises(ApprovalClosed, match="“effect” was edited"):
        answer(first, approver())
    assert driver.turn() == []
    assert pending(workflow) != first


def test_a_plan_that_was_sent_back_is_asked_about_anew_as_a_whole_when_one_step_is_edited() -> None:
    workflow, driver = requested(effect("one"), effect("two", cents=2), scope="plan")
    send_back(workflow)
    assert set(workflow.approvals.values_list("status", flat=True)) == {A.RETURNED}
    edit(workflow, {"customer": "acme", "cents": 3}, name="two")
    assert driver.turn() == []
    assert workflow.approvals.filter(status="pending").count() == 2
    assert workflow.approvals.filter(status="superseded").count() == 2


def test_who_asks_for_changes_counts_once_and_others_come_too_late() -> None:
    workflow, _ = requested(needed=2)
    approval, ann = pending(workflow), approver("ann")
    for _ in range(2):
        answer(approval, ann, DecisionKind.REQUEST_CHANGES)
    with pytest.raises(ApprovalClosed, match="ann asks for changes"):
        answer(approval, approver("bob"))
    assert approval.decisions.count() == 1


def test_what_was_sent_back_can_be_taken_back_and_that_ends_it() -> None:
    workflow, driver = requested()
    approval = send_back(workflow)
    assert run("answer", str(approval.pk), "withdraw", reason="no", user=boss().get_username()).code == 0
    approval.refresh_from_db()
    assert (approval.status, status(workflow), driver.turn()) == (A.WITHDRAWN, WorkflowStatus.ABANDONED, [])


def boss() -> Any:
    return factories.person("adam", groups=["Admin"])


def test_what_was_sent_before_is_not_sent_back(time_machine: MovableTime) -> None:
    workflow, driver = submit(KEYED), JournalDriver()
    driver.report(driver.claim(), Refused("busy"))
    ask()
    time_machine.pass_seconds(5)
    assert driver.turn() == []
    with pytest.raises(DecisionNotAllowed, match="sent already"):
        answer(pending(workflow), approver(), DecisionKind.REQUEST_CHANGES)
    page = signed_in(approver("bob")).get(f"/approvals/{pending(workflow).pk}/")
    assert set(answers(page)) == {"approve", "reject"}


def test_only_what_was_not_sent_can_be_edited() -> None:
    workflow, driver = submit(KEYED), JournalDriver()
    claim = driver.claim()
    with pytest.raises(EditRefused, match="is started: only what was not sent"):
        edit(workflow, SMALLER)
    driver.report(claim, Receipt())
    with pytest.raises(AlreadyEnding, match="completed"):
        edit(workflow, SMALLER)


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"customer": "acme"}, ["/cents: is missing"]),
        ({"customer": "acme", "cents": 1.5}, ["/cents: must be an integer, not the number 1.5"]),
        ({"customer": {"$result": "nothing#/x"}, "cents": 1}, ["/customer: no step is named nothing"]),
        ([], ["/: must be an object, not an array"]),
    ],
)
def test_every_fault_of_the_new_arguments_is_reported_and_nothing_changes(arguments: Any, faults: list[str]) -> None:
    workflow = submit(KEYED)
    with pytest.raises(SubmissionInvalid) as refused:
        edit(workflow, arguments)
    assert [str(fault) for fault in refused.value.faults] == faults
    assert statuses(workflow) == [("effect", S.PREPARED)]


def test_the_same_arguments_in_another_spelling_change_nothing() -> None:
    workflow = submit(KEYED)
    with pytest.raises(EditRefused, match="arguments that “effect” has"):
        edit(workflow, {"urgent": False, "cents": 1, "customer": "acme"})


@pytest.mark.parametrize(
    ("groups", "team", "refusal"), [(["Agent"], "Other", NotFound), (["Approver"], "Default", Forbidden)]
)
def test_who_may_not_submit_for_the_team_may_not_edit(groups: list[str], team: str, refusal: type[Exception]) -> None:
    workflow = submit(KEYED)
    person = factories.person("max", groups=groups, teams=[factories.team(team)])
    with pytest.raises(refusal):
        edit(workflow, SMALLER, user=person)
    with pytest.raises(NotFound):
        edit(workflow, SMALLER, name="nothing")
    with pytest.raises(ActionIncomplete):
        edit(workflow, SMALLER, reason=" ")
    assert workflow.steps.count() == 1


def test_the_edit_is_in_the_audit_with_the_key_that_it_closed() -> None:
    workflow = submit(KEYED)
    old = workflow.steps.get()
    new = edit(workflow, SMALLER)
    entry = json.loads(AuditEntry.objects.get(stream_id=workflow.pk, verb="edit").text)
    assert (entry["reason"], entry["details"]) == (
        "smaller",
        {"step": str(new.pk), "superseded": str(old.pk), "closed_key": old.idempotency_key},
    )


def test_a_superseded_step_stands_and_never_runs() -> None:
    workflow = submit(KEYED)
    old = workflow.steps.get()
    edit(workflow, SMALLER)
    with pytest.raises(IntegrityError, match="legal_arrows_only"):
        Step.objects.filter(pk=old.pk).update(status=StepStatus.STARTED)
    (claim,) = JournalDriver().turn()
    assert claim.step_id != old.pk


def test_the_command_edits_from_a_file(tmp_path: Path) -> None:
    workflow = submit(KEYED)
    file = tmp_path / "arguments.yaml"
    file.write_text("customer: acme\ncents: 2\n")
    done = run("edit", str(workflow.pk), "effect", str(file), reason="smaller")
    assert (done.code, done.out) == (0, 'Changed effect: {"cents":2,"customer":"acme","urgent":false}\n')
    assert run("edit", str(workflow.pk), "effect", str(file), reason="smaller").code == 3
    file.write_text("customer: acme\ncents: few\n")
    faulty = run("edit", str(workflow.pk), "effect", str(file), reason="smaller")
    assert (faulty.code, faulty.err.splitlines()[0]) == (2, '/cents: must be an integer, not the string "few"')


def test_changes_are_asked_for_on_the_page() -> None:
    workflow, _ = requested()
    approval, client = pending(workflow), signed_in(approver())
    form = answers(client.get(f"/approvals/{approval.pk}/"))["request_changes"]
    sent = {**form["fields"], **form["buttons"], "reason": "Only half of it."}
    page = client.get(client.post(form["action"], sent)["Location"]).text
    for shown in ("The agent was asked to change it", "ann asks for changes: Only half of it.", "awaiting agent"):
        assert shown in page, shown
    assert "superseded" not in client.get(f"/workflows/{workflow.pk}/").text
    edit(workflow, SMALLER)
    assert "superseded" in client.get(f"/workflows/{workflow.pk}/").text
