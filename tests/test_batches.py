"""What becomes of a plan when a batch does not succeed as a whole: the policy decides, on record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from approvals.notifying import letter_contents
from checkpoint.explaining import waiting
from checkpoint.models import AuditEntry, Case, PolicyVersion, Step, Waiver, Workflow
from checkpoint.outcomes import Outcome, OutcomeUnknown, Receipt, Refused
from checkpoint.states import CaseReason, Decision, StepStatus, WorkflowStatus
from checkpoint.turns.calls import Claim, Report
from tests import factories
from tests.api_driver import Api
from tests.approval_driver import in_force, status
from tests.case_driver import command
from tests.console_driver import signed_in
from tests.journal_driver import KEYED, OPAQUE, JournalDriver, answer, case, effect, submit
from tests.law_driver import ACCEPTED, RawSession, raw
from tests.time_driver import MovableTime

__all__ = ["raw"]

pytestmark = pytest.mark.usefixtures("database")

NO = Refused("the address is not known", code="404")
S, W = StepStatus, WorkflowStatus


def on_failure(answer: str) -> PolicyVersion:
    """A policy that gives each step one try, and says what follows when one of a batch fails."""
    return in_force({"set": {"batch": {"on_failure": answer}}}, max_attempts=1, retry_base=0.001)


def batch(*names: str, position: int = 1) -> list[dict[str, Any]]:
    """Steps that run side by side."""
    return [effect(name, cents=number) | {"position": position} for number, name in enumerate(names, 1)]


def then(name: str, position: int, **arguments: Any) -> dict[str, Any]:
    return effect(name, **arguments) | {"position": position}


def result_of(name: str) -> dict[str, str]:
    return {"$result": f"{name}#/operation_id"}


@dataclass
class Batches:
    """One worker, and time that passes."""

    time: MovableTime
    driver: JournalDriver = field(default_factory=JournalDriver)

    def report(self, claims: list[Claim], **outcomes: Outcome) -> list[Claim]:
        """Reports how the named calls went, all in one turn; what failed is looked at after its wait."""
        reports = [Report(each, outcomes[each.step_name]) for each in claims if each.step_name in outcomes]
        found = self.driver.turn(*reports, hands=2000)
        self.time.pass_seconds(1)
        return found + self.turn()

    def turn(self, hands: int = 2000) -> list[Claim]:
        return self.driver.turn(hands=hands)


@pytest.fixture
def worker(time_machine: MovableTime) -> Batches:
    return Batches(time_machine)


def statuses(workflow: Workflow) -> dict[str, str]:
    return dict(Step.objects.filter(workflow=workflow).values_list("name", "status"))


def test_by_default_the_plan_waits_for_the_cases_decisions(worker: Batches) -> None:
    in_force(max_attempts=1)
    workflow = submit(KEYED, *batch("a", "b"), then("after", 2))
    worker.report(worker.turn(), a=NO, b=Receipt())
    assert statuses(workflow) == {"a": S.FAILED, "b": S.VERIFIED, "after": S.PREPARED}
    assert (status(workflow), case(workflow).reason) == (W.NEEDS_REVIEW, CaseReason.RETRIES_EXHAUSTED)
    assert not Waiver.objects.exists()


def test_with_continue_the_plan_goes_on_with_what_succeeded_by_a_recorded_decision(worker: Batches) -> None:
    policy = on_failure("continue")
    workflow = submit(KEYED, *batch("a", "b", "c"), then("after", 2))
    claims = worker.turn()
    assert worker.report(claims, a=NO, b=Receipt()) == []
    assert statuses(workflow) == {"a": S.ABANDONED, "b": S.VERIFIED, "c": S.STARTED, "after": S.PREPARED}
    assert status(workflow) is W.EXECUTING
    (after,) = worker.report(claims, c=Receipt())
    assert after.step_name == "after"
    worker.report([after], after=Receipt())
    assert status(workflow) is W.COMPLETED
    waiver = Waiver.objects.get()
    assert (waiver.step.name, waiver.policy_version_id, waiver.cause) == ("a", policy.pk, "failed")
    assert f"policy version {policy.number} goes on without it" in waiver.reason
    assert "404" in waiver.reason
    entry = AuditEntry.objects.get(stream=workflow.pk, verb="waive")
    assert str(policy.pk) in entry.text
    assert not Case.objects.exists()


def test_a_step_has_all_its_tries_before_it_is_waived(worker: Batches) -> None:
    in_force({"set": {"batch": {"on_failure": "continue"}}}, max_attempts=2, retry_base=0.001)
    workflow = submit(KEYED, *batch("a", "b"))
    (again,) = worker.report(worker.turn(), a=NO, b=Receipt())
    assert (again.step_name, again.attempt_number) == ("a", 2)
    worker.report([again], a=NO)
    assert statuses(workflow)["a"] == S.ABANDONED
    assert status(workflow) is W.COMPLETED


def test_what_may_have_happened_is_never_waived_but_asked(worker: Batches) -> None:
    on_failure("continue")
    workflow = submit(OPAQUE, *batch("a", "b", "c"), then("after", 2))
    worker.report(worker.turn(), a=NO, b=OutcomeUnknown("the line went dead"), c=Receipt())
    assert statuses(workflow) == {"a": S.ABANDONED, "b": S.UNCERTAIN, "c": S.VERIFIED, "after": S.PREPARED}
    assert status(workflow) is W.NEEDS_REVIEW
    answer(case(workflow), Decision.RETRY)
    worker.time.pass_seconds(60)
    worker.report(worker.turn(), b=NO)
    assert statuses(workflow)["b"] == S.ABANDONED, "now it is proved, and the policy decides"
    assert worker.driver.claim().step_name == "after"


def test_a_step_alone_at_its_position_is_no_batch_and_asks(worker: Batches) -> None:
    on_failure("continue")
    workflow = submit(KEYED, effect("alone"), then("after", 2))
    worker.report([worker.driver.claim()], a=NO, b=NO, alone=NO)
    assert case(workflow).reason == CaseReason.RETRIES_EXHAUSTED
    assert not Waiver.objects.exists()


def test_a_batch_of_which_nothing_is_left_asks_about_its_last_step(worker: Batches) -> None:
    on_failure("continue")
    workflow = submit(KEYED, *batch("a", "b"), then("after", 2))
    worker.report(worker.turn(), a=NO, b=NO)
    assert sorted(statuses(workflow).values()) == [S.ABANDONED, S.FAILED, S.PREPARED]
    asked = case(workflow)
    assert "does not go on without it by itself" in asked.sentence + str(asked.findings)
    assert status(workflow) is W.NEEDS_REVIEW


def test_what_refers_to_the_result_of_a_waived_step_is_waived_with_the_reason(worker: Batches) -> None:
    on_failure("continue")
    workflow = submit(
        KEYED, *batch("a", "b"), then("of_a", 2, customer=result_of("a")), then("of_b", 2, customer=result_of("b")),
        then("of_of_a", 3, customer=result_of("of_a")), then("last", 4),
    )  # fmt: skip
    claims = worker.report(worker.turn(), a=NO, b=Receipt("op_b"))
    for name in ("of_b", "last"):
        claims = claims or worker.turn() or worker.turn()
        assert [claim.step_name for claim in claims] == [name]
        claims = worker.report(claims, **{name: Receipt()})
    assert status(workflow) is W.COMPLETED
    waived = {waiver.step.name: waiver for waiver in Waiver.objects.select_related("step")}
    assert {name: waiver.cause for name, waiver in waived.items()} == {
        "a": "failed", "of_a": "lacks_result", "of_of_a": "lacks_result",
    }  # fmt: skip
    assert "refers to the result of step a, which was waived" in waived["of_a"].reason
    assert not Case.objects.exists()


def test_with_stop_nothing_more_starts_and_what_is_under_way_settles(worker: Batches) -> None:
    policy = on_failure("stop")
    workflow = submit(KEYED, *batch("a", "b", "c"), then("after", 2))
    claims = worker.turn(hands=2)
    assert [claim.step_name for claim in claims] == ["a", "b"]
    worker.driver.turn(Report(claims[0], NO), hands=0)
    worker.time.pass_seconds(1)
    assert worker.turn(hands=1) == []
    assert statuses(workflow) == {"a": S.ABANDONED, "b": S.STARTED, "c": S.ABANDONED, "after": S.ABANDONED}
    worker.report(claims, b=Receipt())
    assert statuses(workflow)["b"] == S.VERIFIED
    assert status(workflow) is W.ABANDONED
    assert not Waiver.objects.exists()
    entry = AuditEntry.objects.get(stream=workflow.pk, verb="wind_down")
    assert f"policy version {policy.number} stops the plan: step a of a batch failed for good" in entry.text


def test_the_policy_counts_that_the_workflow_pins(worker: Batches) -> None:
    on_failure("continue")
    workflow = submit(KEYED, *batch("a", "b"))
    on_failure("stop")
    worker.report(worker.turn(), a=NO, b=Receipt())
    assert status(workflow) is W.COMPLETED


def test_a_thousand_failures_are_decided_in_one_query(worker: Batches) -> None:
    on_failure("continue")
    workflow = submit(KEYED, *batch(*(f"s{number}" for number in range(1000))))
    claims = worker.turn()
    assert len(claims) == 1000
    worker.report(claims, **{claim.step_name: NO for claim in claims} | {"s7": Receipt()})
    assert status(workflow) is W.COMPLETED
    assert Waiver.objects.count() == 999


# --- a partial result is shown as such everywhere


@pytest.fixture
def partial(worker: Batches) -> Workflow:
    """A workflow that was completed without one of its steps."""
    on_failure("continue")
    submitter = factories.person("sam", groups=["Operator"], teams=[factories.team("Default")])
    workflow = submit(KEYED, *batch("a", "b"), user=submitter)
    worker.report(worker.turn(), a=NO, b=Receipt())
    assert status(workflow) is W.COMPLETED
    return workflow


def test_explain_says_that_a_result_is_partial_and_why(partial: Workflow) -> None:
    code, said = command("explain", str(partial.pk))
    assert code == 0
    assert f"{partial.pk}: completed in part" in said
    assert "1 of 2 steps are verified (1 waived). It is completed in part, without a step, which was waived." in said
    assert "Batch at position 1: 2 steps, 1 verified, 1 waived" in said
    assert "waived: policy version 2 goes on without it: it failed and no tries are left (404" in said


def test_the_api_says_that_a_result_is_partial(partial: Workflow) -> None:
    api = Api.of(factories.person("agent", groups=["Agent"], teams=[partial.team]))
    shown = api.get(f"workflows/{partial.pk}/").json()
    assert (shown["status"], shown["partial"]) == ("completed", True)
    assert shown["counts"]["plan"] == {"position": None, "total": 2, "by_state": {"verified": 1, "waived": 1}}
    (listed,) = api.get("workflows/").json()["items"]
    assert listed["partial"] is True
    explained = api.get(f"workflows/{partial.pk}/explanation/").json()
    assert explained["partial"] is True
    assert "completed in part" in explained["sentence"]


def test_the_console_says_that_a_result_is_partial(partial: Workflow) -> None:
    client = signed_in(factories.person("grace", groups=["Auditor"]))
    own = f"/workflows/{partial.pk}/"
    pages = {address: client.get(address).text for address in ("/workflows/", own, f"{own}times/")}
    assert [address for address, page in pages.items() if "in part" not in page or "waived" not in page] == []
    assert "1 waived" in pages["/workflows/"]
    assert "1 waived" in pages[own]
    assert "goes on without it: it failed and no tries are left" in pages[own]


def test_the_notice_and_the_audit_say_that_a_result_is_partial(partial: Workflow) -> None:
    told = letter_contents.about_end(partial)
    assert told.subject.startswith("Completed in part: ")
    assert "1 of 2 steps are verified, and 1 were waived" in told.opening
    assert told.data["steps"]["waived"] == 1
    entry = AuditEntry.objects.filter(stream=partial.pk, verb="move").latest("seq")
    assert "in part: 1 step was waived" in entry.text
    *_, last = waiting.follow(partial.pk, seconds=1, until=[W.COMPLETED])
    assert last.line == "workflow: completed in part, 1 step waived"


def test_a_whole_result_is_not_called_partial(worker: Batches) -> None:
    on_failure("continue")
    workflow = submit(KEYED, *batch("a", "b"))
    worker.report(worker.turn(), a=Receipt(), b=Receipt())
    said = command("explain", str(workflow.pk))[1]
    assert "in part" not in said
    assert "in part" not in signed_in(factories.person("grace", groups=["Auditor"])).get("/workflows/").text


# --- the law


def waived(workflow: Workflow, step: Step) -> dict[str, Any]:
    return {"step": str(step.pk), "policy": str(workflow.policy_version_id), "workflow": str(workflow.pk)}


WAIVE = (
    "INSERT INTO checkpoint_waiver (id, step_id, policy_version_id, cause, reason, waived_at)"
    " VALUES (gen_random_uuid(), %(step)s, %(policy)s, 'failed', 'because', now())"
)
COMPLETE = (
    "UPDATE checkpoint_workflow SET status = 'completed', ended_at = now(), wake_at = NULL WHERE id = %(workflow)s"
)
FAIL = "UPDATE checkpoint_attempt SET applied = false, ended_at = now() WHERE step_id = %(step)s"
END = "UPDATE checkpoint_step SET status = 'abandoned' WHERE id = %(step)s"


def two_steps(other: StepStatus) -> tuple[Workflow, Step]:
    """A workflow under way with a verified step, and one in another state."""
    made = factories.workflow()
    factories.step(made, S.VERIFIED)
    Workflow.objects.filter(pk=made.pk).update(status=W.EXECUTING)
    return made, factories.step(made, other)


def test_a_workflow_is_completed_by_verified_and_waived_steps_and_no_others(raw: RawSession) -> None:
    workflow, failed = two_steps(S.FAILED)
    known = waived(workflow, failed)
    assert raw.tries(END, WAIVE, COMPLETE, **known) == ACCEPTED
    assert raw.tries(END, COMPLETE, **known) == "completed_means_verified"
    assert raw.tries(COMPLETE, **known) == "completed_means_verified"
    assert raw.tries(END, COMPLETE, WAIVE, **known) == "completed_means_verified"


@pytest.mark.parametrize("other", [S.PREPARED, S.STARTED, S.COMMITTED, S.VERIFIED, S.FAILED, S.UNCERTAIN])
def test_nothing_is_waived_that_has_not_ended(raw: RawSession, other: StepStatus) -> None:
    workflow, step = two_steps(other)
    assert raw.tries(WAIVE, **waived(workflow, step)) == "waives_what_failed"


def test_nothing_is_waived_that_may_have_taken_effect(raw: RawSession) -> None:
    workflow, uncertain = two_steps(S.UNCERTAIN)
    known = waived(workflow, uncertain)
    assert raw.tries(END, WAIVE, **known) == "waives_what_failed"
    assert raw.tries(FAIL, END, WAIVE, **known) in (ACCEPTED, "ending_is_final")


@pytest.mark.parametrize("ends", ["winding_down = true", "status = 'abandoned', ended_at = now(), wake_at = NULL"])
def test_nothing_is_waived_in_a_plan_that_ends(raw: RawSession, ends: str) -> None:
    workflow, failed = two_steps(S.FAILED)
    end = f"UPDATE checkpoint_workflow SET {ends} WHERE id = %(workflow)s"
    assert raw.tries(END, end, WAIVE, **waived(workflow, failed)) == "waives_in_a_living_plan"


def test_a_waiver_stands(raw: RawSession) -> None:
    workflow, failed = two_steps(S.FAILED)
    refusals = {"no right", "append_only", "never_deleted", "never_truncated"}
    for change in ("UPDATE checkpoint_waiver SET reason = 'x'", "DELETE FROM checkpoint_waiver"):
        assert raw.tries(END, WAIVE, change, **waived(workflow, failed)) in refusals
    assert raw.tries("TRUNCATE checkpoint_waiver") in refusals
    assert raw.tries(END, WAIVE, WAIVE, **waived(workflow, failed)).startswith("constraint")
