"""Plans that their agents leave open: appended to, sealed, and asked about where the agent does not come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from checkpoint.appending import append, seal
from checkpoint.errors import ActionIncomplete, AlreadyEnding, Forbidden, NotFound, PlanSealed, SubmissionInvalid
from checkpoint.models import AuditEntry, Case, Step, Workflow
from checkpoint.outcomes import Receipt
from checkpoint.planning.documents import Document
from checkpoint.resuming import resume
from checkpoint.states import CaseReason, CaseStatus, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import abandon
from tests import approval_driver, factories
from tests.api_driver import Api
from tests.approval_driver import status
from tests.console_driver import signed_in
from tests.journal_driver import KEYED, JournalDriver, answer, case, effect, submit
from tests.law_driver import RawSession, raw
from tests.submissions import ACTOR, document, plan_of, submit_plan
from tests.test_commands import run
from tests.time_driver import MovableTime, time_machine

__all__ = ["raw", "time_machine"]

pytestmark = pytest.mark.usefixtures("database")

W = WorkflowStatus


def open_plan(user: User | None = None, **members: Any) -> Workflow:
    """A workflow of one step whose agent may append more."""
    submit(KEYED)  # publishes the tool
    return submit_plan(plan_of(document(effect("first"), sealed=False, **members), newest_tools()), user)


def run_all(workflow: Workflow) -> WorkflowStatus:
    """Lets a worker do what there is to do."""
    driver = JournalDriver()
    claims = driver.turn()
    while claims:
        claim = claims.pop()
        claims += driver.report(claim, Receipt(f"op_{claim.step_name}", {"cents": 7}))
    return status(workflow)


def more(workflow: Workflow, *steps: dict[str, Any], **members: Any) -> list[Step]:
    """Appends as the machine's operator."""
    read = Document.of({"steps": list(steps), **members})
    return append(workflow_id=workflow.pk, document=read, tools=newest_tools(), actor=ACTOR).steps


def close(workflow: Workflow) -> None:
    """Seals as the machine's operator."""
    seal(workflow_id=workflow.pk, reason="that was all", actor=ACTOR)


def test_an_open_plan_waits_goes_on_and_is_completed_when_it_is_sealed() -> None:
    workflow = open_plan()
    assert run_all(workflow) is W.AWAITING_AGENT
    (second,) = more(workflow, effect("second", cents={"$result": "first#/facts/cents"}))
    assert (second.position, second.status) == (2, StepStatus.PLANNED)
    assert run_all(workflow) is W.AWAITING_AGENT
    second.refresh_from_db()
    assert json.loads(second.arguments or "")["cents"] == 7
    close(workflow)
    assert status(workflow) is W.COMPLETED
    assert workflow.agent_due_at is None


def test_appended_before_the_first_was_over_and_sealed_with_the_last() -> None:
    workflow = open_plan()
    more(workflow, effect("a", cents=2), {**effect("b", cents=3), "position": 2}, sealed=True)
    assert run_all(workflow) is W.COMPLETED
    assert list(workflow.steps.values_list("name", "position")) == [("first", 1), ("a", 2), ("b", 2)]
    verbs = [json.loads(entry.text)["verb"] for entry in AuditEntry.objects.filter(stream_id=workflow.pk)]
    assert {"append", "seal"} <= set(verbs)


@pytest.mark.parametrize(
    ("step", "path"),
    [
        (effect("first"), "/steps/0/name"),
        ({**effect("b"), "position": 0}, "/steps/0/position"),
        ({**effect("b"), "tool": "nothing"}, "/steps/0/tool"),
        (effect("b", customer={"$result": "nobody#/operation_id"}), "/steps/0/arguments/customer"),
        ({**effect("b"), "thoughts": "hm"}, "/steps/0/thoughts"),
    ],
)
def test_what_does_not_fit_the_plan_is_refused_whole(step: dict[str, Any], path: str) -> None:
    workflow = open_plan()
    with pytest.raises(SubmissionInvalid) as refused:
        more(workflow, effect("fine"), step) if path == "" else more(workflow, step)
    assert [fault.path for fault in refused.value.faults] == [path]
    assert workflow.steps.count() == 1


def test_nothing_is_appended_to_what_is_sealed_ended_or_ending() -> None:
    sealed = submit(KEYED)
    with pytest.raises(PlanSealed, match="Submit what is still to be done"):
        more(sealed, effect("b"))
    ended = open_plan()
    abandon(workflow_id=ended.pk, actor=ACTOR, reason="enough")
    with pytest.raises(AlreadyEnding):
        more(ended, effect("b"))
    with pytest.raises(AlreadyEnding):
        close(ended)
    with pytest.raises(ActionIncomplete):
        seal(workflow_id=sealed.pk, reason=" ", actor=ACTOR)


def test_sealing_twice_changes_nothing() -> None:
    workflow = open_plan()
    close(workflow)
    version = Workflow.objects.get(pk=workflow.pk).version
    close(workflow)
    assert Workflow.objects.get(pk=workflow.pk).version == version


def test_s25_rights_count_when_it_is_done() -> None:
    bot = factories.person("bot", groups=["Agent"], teams=[factories.team("Default")])
    eve = factories.person("eve", groups=["Agent"], teams=[factories.team("Other")])
    auditor = factories.person("aud", groups=["Auditor"])
    workflow = open_plan(bot)
    for person, refusal in ((eve, NotFound), (auditor, Forbidden)):
        with pytest.raises(refusal):
            seal(workflow_id=workflow.pk, reason="mine", actor=ACTOR, user=person)
    seal(workflow_id=workflow.pk, reason="done", actor=ACTOR, user=bot)


class TestSilence:
    """The agent's time."""

    def test_past_its_time_people_are_asked_and_can_wait_on(self, time_machine: MovableTime) -> None:
        workflow = open_plan(agent_deadline=600)
        assert run_all(workflow) is W.AWAITING_AGENT
        driver = JournalDriver()
        time_machine.pass_seconds(590)
        assert (driver.turn(), status(workflow)) == ([], W.AWAITING_AGENT)
        time_machine.pass_seconds(20)
        assert (driver.turn(), status(workflow)) == ([], W.NEEDS_REVIEW)
        asked = case(workflow)
        assert asked.reason == CaseReason.AGENT_SILENT
        assert "it is its agent's turn" in asked.sentence
        answer(asked, DecisionKind.CONTINUE)
        assert status(workflow) is W.AWAITING_AGENT
        time_machine.pass_seconds(610)
        assert driver.turn() == []
        assert Case.objects.filter(workflow=workflow).count() == 2

    def test_people_can_end_it_and_what_happened_stays(self, time_machine: MovableTime) -> None:
        workflow = open_plan(agent_deadline=60)
        run_all(workflow)
        time_machine.pass_seconds(61)
        JournalDriver().turn()
        answer(case(workflow), DecisionKind.ABANDON)
        assert status(workflow) is W.ABANDONED
        assert workflow.steps.get().status == StepStatus.VERIFIED

    @pytest.mark.parametrize("comeback", ["append", "seal", "resume"])
    def test_an_agent_that_comes_back_late_goes_on_and_the_question_is_settled(
        self, comeback: str, time_machine: MovableTime
    ) -> None:
        workflow = open_plan(agent_deadline=60)
        run_all(workflow)
        time_machine.pass_seconds(61)
        JournalDriver().turn()
        if comeback == "append":
            more(workflow, effect("second", cents=2))
        elif comeback == "seal":
            close(workflow)
        else:
            resume(workflow_id=workflow.pk, prompt_version="2", actor=ACTOR)
        asked = case(workflow)
        assert (asked.status, asked.closing) == (CaseStatus.SETTLED, "the agent came back")
        expected = {"append": W.EXECUTING, "seal": W.COMPLETED, "resume": W.AWAITING_AGENT}
        assert status(workflow) is expected[comeback]

    def test_where_the_plan_does_not_say_the_policy_does(self, time_machine: MovableTime) -> None:
        approval_driver.in_force(agent_deadline=120)
        workflow = open_plan()
        run_all(workflow)
        time_machine.pass_seconds(119)
        assert (JournalDriver().turn(), status(workflow)) == ([], W.AWAITING_AGENT)
        time_machine.pass_seconds(2)
        assert (JournalDriver().turn(), status(workflow)) == ([], W.NEEDS_REVIEW)

    def test_also_what_people_sent_back_has_a_time(self, time_machine: MovableTime) -> None:
        workflow, driver = approval_driver.requested()
        ann = approval_driver.approver()
        approval_driver.answer(approval_driver.pending(workflow), ann, DecisionKind.REQUEST_CHANGES)
        assert status(workflow) is W.AWAITING_AGENT
        time_machine.pass_seconds(86_401)
        assert (driver.turn(), status(workflow)) == ([], W.NEEDS_REVIEW)
        answer(case(workflow), DecisionKind.ABANDON)
        assert status(workflow) is W.ABANDONED

    def test_the_time_is_told(self) -> None:
        workflow = open_plan(agent_deadline=600)
        run_all(workflow)
        told = run("explain", str(workflow.pk)).out
        assert "a person is asked." in told
        page = signed_in(approval_driver.approver()).get(f"/workflows/{workflow.pk}/")
        assert "then people are asked" in page.content.decode()

    @pytest.mark.parametrize("seconds", [59, 30 * 86_400 + 1, "60", 60.5])
    def test_a_time_has_limits(self, seconds: Any) -> None:
        with pytest.raises(SubmissionInvalid) as refused:
            open_plan(agent_deadline=seconds)
        assert [fault.path for fault in refused.value.faults] == ["/agent_deadline"]


class TestEdges:
    """The API and the commands."""

    def test_over_the_api_once_with_its_version(self) -> None:
        bot = factories.person("bot", groups=["Agent"], teams=[factories.team("Default")])
        workflow, api = open_plan(bot), Api.of(bot)
        address = f"workflows/{workflow.pk}/"
        tag = api.get(address)["ETag"]
        sent = {"steps": [effect("second", cents=2)]}
        first = api.post(f"{address}steps/", sent, key="a", **{"If-Match": tag})
        again = api.post(f"{address}steps/", sent, key="a", **{"If-Match": tag})
        assert (first.status_code, first.content) == (201, again.content)
        assert [step["name"] for step in first.json()["steps"]] == ["second"]
        assert workflow.steps.count() == 2
        stale = api.post(f"{address}seal/", {"reason": "all"}, **{"If-Match": tag})
        assert (stale.status_code, stale.json()["code"]) == (412, "version_moved")
        assert api.post(f"{address}seal/", {"reason": "all"}).json()["workflow"]["sealed"] is True
        refused = api.post(f"{address}steps/", {"steps": [effect("third", cents=3)]})
        assert (refused.status_code, refused.json()["code"]) == (409, "plan_sealed")
        assert Api.of(bot, ["read"]).post(f"{address}seal/", {"reason": "all"}).status_code == 403

    def test_by_command(self, tmp_path: Path) -> None:
        workflow, file = open_plan(), tmp_path / "more.yaml"
        file.write_text("steps:\n- {name: second, tool: effect, arguments: {customer: acme, cents: 2}}\n")
        assert run("append", str(workflow.pk), str(file)).out.startswith("Appended 1 steps")
        twice = run("append", str(workflow.pk), str(file))
        assert (twice.code, "another step is named" in twice.err) == (2, True)
        assert run("seal", str(workflow.pk), "--reason", "all").code == 0
        sealed = run("append", str(workflow.pk), str(file))
        assert (sealed.code, "is sealed" in sealed.err) == (1, True)


def test_the_law_keeps_a_plan_sealed_and_completes_no_other(raw: RawSession) -> None:
    sealed, left_open = submit(KEYED), open_plan()
    run_all(left_open)
    table = "checkpoint_workflow"
    assert raw.updates(table, sealed.pk, sealed=False) == "sealed_stays"
    ended = {"status": "completed", "ended_at": "2026-12-01T12:00:00Z", "wake_at": None}
    assert raw.updates(table, left_open.pk, **ended) == "completed_means_sealed"
