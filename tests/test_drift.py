"""What a changed prompt or tool does at the next dispatch: continue, reapprove or review, as the policy says."""

from __future__ import annotations

import pytest

from checkpoint import resuming, workflows
from checkpoint.contracts import Contract, Variant
from checkpoint.errors import ActionIncomplete, AlreadyEnding, Forbidden, NotFound
from checkpoint.models import Activity, Approval, AuditEntry, Case, Workflow
from checkpoint.outcomes import Absent, Receipt
from checkpoint.people import Actor
from checkpoint.short_ids import short
from checkpoint.states import ApprovalStatus, CaseReason, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.tool_versions import Declaration
from tests import factories
from tests.approval_driver import answer as answer_request
from tests.approval_driver import approver, in_force, pending, status
from tests.journal_driver import KEYED, OPAQUE, QUERYABLE, JournalDriver, answer, case, effect, step, submit
from tests.law_driver import RawSession, raw
from tests.submissions import INVOICE_SCHEMA, published
from tests.test_commands import run
from tests.time_driver import MovableTime

__all__ = ["raw"]

pytestmark = pytest.mark.usefixtures("database")

AGENT = Actor("tests", "command")
KINDS = pytest.mark.parametrize("kind", ["prompt", "tool"])
REASON = {"prompt": CaseReason.PROMPT_CHANGED, "tool": CaseReason.TOOL_CHANGED}


def change(kind: str, workflow: Workflow, promises: Contract = KEYED) -> None:
    """Changes what the workflow was planned with."""
    if kind == "prompt":
        resuming.resume(workflow_id=workflow.pk, prompt_version="refund/99", actor=AGENT)
    else:
        published(Declaration("effect", "2", "An effect, done better.", INVOICE_SCHEMA, (Variant("only", promises),)))


def drivers() -> JournalDriver:
    """A worker with the old and the new version of the tool."""
    return JournalDriver("effect@1", "effect@2")


def answers(kind: str, answer: str) -> dict[str, object]:
    return {"drift": {kind: answer}}


@KINDS
def test_s12_review_asks_a_person_before_the_step_starts_and_continue_goes_on_under_what_is_there(kind: str) -> None:
    in_force({"set": answers(kind, "review")})
    workflow = submit(KEYED)
    change(kind, workflow)
    driver = drivers()
    assert driver.turn() == []
    asked = case(workflow)
    assert (asked.reason, step(workflow).status) == (REASON[kind], StepStatus.PREPARED)
    known = " ".join(asked.findings["known"])
    assert ("refund/99" if kind == "prompt" else "effect@2 was published") in known
    if kind == "tool":
        assert "The step was planned with effect@1, published at" in known
        assert known.endswith("Changed since: its summary.")
    answer(asked, DecisionKind.CONTINUE)
    claim = driver.claim()
    assert claim.tool_version == ("2" if kind == "tool" else "1")
    workflow.refresh_from_db()
    if kind == "prompt":
        assert (workflow.prompt_version, workflow.resumed_prompt) == ("refund/99", None)
    driver.report(claim, Receipt())
    assert Case.objects.count() == 1, "what a person accepted is not asked again"


@KINDS
def test_s12_review_can_be_answered_with_abandon(kind: str) -> None:
    in_force({"set": answers(kind, "review")})
    workflow = submit(KEYED)
    change(kind, workflow)
    drivers().turn()
    answer(case(workflow), DecisionKind.ABANDON)
    assert status(workflow) is WorkflowStatus.ABANDONED


@KINDS
def test_s12_reapprove_takes_an_approval_that_was_given_before_and_asks_again(kind: str) -> None:
    in_force({"set": {"approval": {"needed": 1}, **answers(kind, "reapprove")}})
    workflow, driver, ann = submit(OPAQUE), drivers(), approver()
    driver.turn()
    first = pending(workflow)
    answer_request(first, ann)
    change(kind, workflow, OPAQUE)
    assert driver.turn() == []
    first.refresh_from_db()
    assert first.status == ApprovalStatus.SUPERSEDED
    answer_request(pending(workflow), ann)
    assert driver.claim().tool_version == "1", "what is sent is what the step pins"
    assert Approval.objects.count() == 2


def test_a_request_that_waits_is_asked_anew_at_once_when_the_agent_resumes_with_another_prompt() -> None:
    in_force({"set": {"approval": {"needed": 1}}})
    workflow, driver = submit(OPAQUE), drivers()
    driver.turn()
    first = pending(workflow)
    change("prompt", workflow)
    driver.turn()
    assert pending(workflow) != first
    assert pending(workflow).prompt_version == "refund/99"


@KINDS
def test_reapprove_lets_a_step_go_on_that_needs_no_approval(kind: str) -> None:
    in_force({"set": answers(kind, "reapprove")})
    workflow = submit(KEYED)
    change(kind, workflow)
    assert drivers().claim().activity is Activity.EXECUTE


@KINDS
def test_continue_keeps_the_approval_and_is_recorded(kind: str) -> None:
    in_force({"set": {"approval": {"needed": 1}, **answers(kind, "continue")}})
    workflow, driver = submit(OPAQUE), drivers()
    driver.turn()
    answer_request(pending(workflow), approver())
    change(kind, workflow, OPAQUE)
    driver.claim()
    assert Approval.objects.get().status == ApprovalStatus.CONSUMED
    (entry,) = AuditEntry.objects.filter(stream_id=workflow.pk, verb="continue")
    assert REASON[kind] in entry.text


@KINDS
def test_s12_lookups_ignore_drift_and_a_further_send_does_not(kind: str, time_machine: MovableTime) -> None:
    in_force({"set": answers(kind, "review")})
    workflow, driver = submit(QUERYABLE), drivers()
    driver.claim()
    change(kind, workflow, QUERYABLE)
    time_machine.pass_seconds(120)  # nobody heard of the call
    inspection = driver.claim(Activity.INSPECT)
    driver.report(inspection, Absent())
    time_machine.pass_seconds(120)
    assert driver.turn() == []
    assert (case(workflow).reason, step(workflow).attempt_count) == (REASON[kind], 1)


@KINDS
def test_what_was_sent_and_not_answered_is_asked_about_before_its_drift(kind: str, time_machine: MovableTime) -> None:
    in_force({"set": answers(kind, "review")})
    workflow, driver = submit(KEYED), drivers()
    driver.claim()
    change(kind, workflow)
    time_machine.pass_seconds(120)  # the provider would recognise the key, so without drift it would be sent again
    assert driver.turn() == []
    asked = case(workflow)
    assert (asked.reason, "not sent again by itself" in " ".join(asked.findings["known"])) == ("outcome_unknown", True)
    answer(asked, DecisionKind.RETRY)
    time_machine.pass_seconds(120)
    driver.turn()
    drift = Case.objects.get(status="open")
    assert drift.reason == REASON[kind]
    answer(drift, DecisionKind.CONTINUE)
    assert driver.claim().attempt_number == 2


def test_a_prompt_that_comes_back_is_no_drift() -> None:
    in_force({"set": answers("prompt", "review")})
    workflow = submit(KEYED)
    Workflow.objects.filter(pk=workflow.pk).update(prompt_version="refund/3")
    change("prompt", workflow)
    resuming.resume(workflow_id=workflow.pk, prompt_version="refund/3", actor=AGENT)
    drivers().claim()


def test_who_may_submit_may_resume_and_nothing_that_has_ended_is_resumed() -> None:
    agent = factories.person("robo", groups=["Agent"], teams=[factories.team("Default")])
    workflow = submit(KEYED, user=agent)
    resumed = run("resume", short(workflow.pk), "--prompt-version", "refund/4", "--as", "robo")
    assert (resumed.code, "goes on with refund/4" in resumed.out) == (0, True)
    onlooker = factories.person("otto", teams=[factories.team("Default")])
    stranger = factories.person("eve", groups=["Agent"], teams=[factories.team("Legal")])
    for person, refusal in ((onlooker, Forbidden), (stranger, NotFound)):
        with pytest.raises(refusal):
            resuming.resume(workflow_id=workflow.pk, prompt_version="x", actor=AGENT, user=person)
    for text in (" ", "x" * 101, "a\0b"):
        with pytest.raises(ActionIncomplete):
            resuming.resume(workflow_id=workflow.pk, prompt_version=text, actor=AGENT)
    workflows.abandon(workflow_id=workflow.pk, actor=AGENT, reason="not wanted")
    with pytest.raises(AlreadyEnding):
        resuming.resume(workflow_id=workflow.pk, prompt_version="x", actor=AGENT)
    assert AuditEntry.objects.filter(stream_id=workflow.pk, verb="resume").count() == 1


def test_a_share_of_a_plan_is_bound_to_the_prompt_too() -> None:
    in_force({"set": {"approval": {"needed": 1, "scope": "plan"}}})
    workflow, driver = submit(OPAQUE, effect("one"), effect("two", cents=2)), drivers()
    driver.turn()
    answer_request(pending(workflow), approver())
    change("prompt", workflow)
    assert driver.turn() == []
    assert pending(workflow).parts.count() == 1


@pytest.mark.parametrize("changed", [{"prompt_version": "refund/9"}, {"newest_tool_id": None}])
def test_what_an_approval_was_given_under_is_fixed(raw: RawSession, changed: dict[str, object]) -> None:
    in_force({"set": {"approval": {"needed": 1}}})
    workflow, driver = submit(OPAQUE), drivers()
    driver.turn()
    assert raw.updates("checkpoint_approval", pending(workflow).pk, **changed) == "given_under_is_fixed"


def test_what_drifted_of_the_policy_is_said_with_both_versions() -> None:
    in_force({"set": answers("policy", "review")})
    workflow = submit(KEYED)
    then = workflow.policy_version.number
    in_force({"set": answers("policy", "review")}, max_attempts=2)
    assert drivers().turn() == []
    known = case(workflow).findings["known"]
    assert f"Version {then + 1} of the policy is in force; the plan was made under version {then}." in known
