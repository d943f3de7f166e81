"""Steps that agents carry out themselves: one begins, acts once, records; what a crash leaves is asked about."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.models import Activity, Attempt, AuditEntry, Case, Evidence, Step, ToolVersion, Workflow
from checkpoint.outcomes import Found, Receipt, Visible
from checkpoint.states import CaseReason, CaseStatus, Standing, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.tool_versions import Declaration, publish_tools
from tests import approval_driver, factories
from tests.agent_driver import TOOL, Agent, bot, register
from tests.api_driver import Api
from tests.journal_driver import JournalDriver, answer
from tests.law_driver import RawSession, raw
from tests.submissions import ACTOR
from tests.test_commands import run
from tests.time_driver import MovableTime, time_machine

__all__ = ["raw", "time_machine"]

pytestmark = pytest.mark.usefixtures("database")

S, W = StepStatus, WorkflowStatus


@pytest.fixture
def agent() -> Agent:
    """A program with a plan of two steps, none of which is begun."""
    register()
    made = Agent()
    made.submit("a", "b")
    return made


def status() -> str:
    return str(Workflow.objects.get().status)


class TestTheWay:
    """Nothing goes wrong."""

    def test_begun_recorded_and_done_on_its_receipt(self, agent: Agent) -> None:
        assert (JournalDriver().turn(), status()) == ([], W.AWAITING_AGENT)
        begun = agent.begun()
        step = agent.step()
        assert (step.status, step.fence, status()) == (S.STARTED, begun["fence"], W.EXECUTING)
        assert begun["arguments"] == {"customer": "a", "cents": 1}
        assert begun["idempotency_key"] == step.idempotency_key
        answered = agent.record(begun["fence"], operation_id="crm-7", facts={"rows": 1})
        assert (answered.status_code, answered.json()["status"]) == (200, "verified")
        assert answered.json()["result"] == {"rows": 1}
        assert (agent.step().standing, agent.step().operation_id) == (Standing.RECEIPT_ONLY, "crm-7")
        agent.record(agent.begun("b")["fence"], name="b")
        assert status() == W.COMPLETED

    def test_its_own_reading_is_its_word_and_says_so(self, agent: Agent) -> None:
        agent.record(agent.begun()["fence"], reading={"rows": 1})
        assert agent.step().standing == Standing.ATTESTED
        read = Evidence.objects.get(finding="read_by_agent")
        assert (read.standing, read.facts_value) == (Standing.ATTESTED, {"rows": 1})

    def test_workers_never_claim_it(self, agent: Agent) -> None:
        worker = JournalDriver("default:crm.update@1")
        assert worker.turn() == []
        agent.begun()
        assert worker.turn() == []
        assert Attempt.objects.count() == 1

    def test_its_turn_comes_after_the_steps_before_it(self, agent: Agent) -> None:
        answered = agent.begin("b")
        assert (answered.status_code, answered.json()["waits_for"]) == (202, "earlier_steps")
        assert agent.step("b").status == S.PREPARED

    def test_arguments_from_earlier_results_are_fixed_at_begin(self, agent: Agent) -> None:
        agent.record(agent.begun()["fence"], facts={"owner": "ann"})
        workflow = Workflow.objects.get()
        made = Agent(agent.account)
        later = {"customer": {"$result": "c#/facts/owner"}}
        steps = [
            {"name": "c", "tool": "default:crm.update", "arguments": {"customer": "c"}},
            {"name": "d", "tool": "default:crm.update", "arguments": later},
        ]
        made.api.post("workflows/", {"goal": "More.", "steps": steps})
        made.record(made.begun("c")["fence"], name="c", facts={"owner": "ann"})
        assert made.begun("d")["arguments"]["customer"] == "ann"
        assert workflow.status != W.COMPLETED

    def test_what_is_not_applied_is_tried_again_with_the_same_key(
        self, agent: Agent, time_machine: MovableTime
    ) -> None:
        first = agent.begun()
        agent.record(first["fence"], "not_applied", retry_after=30)
        assert (agent.step().status, status()) == (S.FAILED, W.AWAITING_AGENT)
        early = agent.begin().json()
        assert (early["waits_for"], bool(early["retry_at"])) == ("time", True)
        time_machine.pass_seconds(31)
        second = agent.begun()
        assert second["idempotency_key"] == first["idempotency_key"]
        assert (second["fence"] > first["fence"], second["attempt"]) == (True, 2)

    def test_refused_for_good_becomes_a_question(self, agent: Agent, time_machine: MovableTime) -> None:
        agent.record(agent.begun()["fence"], "not_applied", permanent=True)
        time_machine.pass_seconds(61)
        asked = agent.begin().json()
        assert (asked["waits_for"], Case.objects.get().reason) == ("question", CaseReason.RETRIES_EXHAUSTED)
        assert asked["look_at"].endswith(f"/api/v1/cases/{Case.objects.get().pk}/")

    def test_the_trail_names_the_account(self, agent: Agent) -> None:
        agent.record(agent.begun()["fence"])
        entries = [json.loads(text) for text in AuditEntry.objects.order_by("seq").values_list("text", flat=True)]
        moves = [(each["verb"], each["actor"]) for each in entries if each["verb"] in ("start", "commit", "verify")]
        assert moves == [("start", "bot"), ("commit", "bot"), ("verify", "bot")]


class TestOnce:
    """Who comes twice, and who comes late."""

    def test_s05_of_many_who_begin_at_once_one_may_act(self, agent: Agent) -> None:
        def begin(_: int) -> Any:
            try:
                return agent.begin()
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            answered = list(pool.map(begin, range(8)))
        assert sorted(each.status_code for each in answered) == [201, *[409] * 7]
        refused = next(each.json() for each in answered if each.status_code == 409)
        assert (refused["code"], "is begun already" in refused["detail"]) == ("step_not_begun", True)
        assert Attempt.objects.count() == 1

    def test_s50_the_same_request_again_gets_the_same_fence(self, agent: Agent) -> None:
        first, again = agent.begin(key="k"), agent.begin(key="k")
        assert (first.content, again.status_code) == (again.content, 201)
        assert again["Idempotency-Replayed"] == "true"

    def test_a_waiting_answer_is_not_kept(self, agent: Agent) -> None:
        assert agent.begin("b", key="k").status_code == 202
        agent.record(agent.begun()["fence"])
        answered = agent.begin("b", key="k")
        assert answered.status_code == 201, answered.json()

    def test_s07_an_old_fence_writes_nothing_and_is_kept(self, agent: Agent, time_machine: MovableTime) -> None:
        old = agent.begun()["fence"]
        time_machine.pass_seconds(61)
        JournalDriver().turn()  # its time is over: people are asked
        time_machine.pass_seconds(61)
        JournalDriver().turn()
        answer(Case.objects.get(), DecisionKind.RETRY)
        time_machine.pass_seconds(61)
        new = agent.begun()["fence"]
        late = agent.record(old, operation_id="crm-1")
        assert (late.status_code, late.json()["code"]) == (409, "fence_moved")
        assert agent.record(old, operation_id="crm-1").status_code == 409
        assert Evidence.objects.filter(kind="late_receipt", fence=old).count() == 1
        assert Case.objects.filter(reason=CaseReason.DUPLICATE_EFFECT).count() == 1
        assert (agent.step().status, agent.step().fence) == (S.STARTED, new)

    def test_a_late_receipt_settles_what_nobody_tried_since(self, agent: Agent, time_machine: MovableTime) -> None:
        fence = agent.begun()["fence"]
        time_machine.pass_seconds(61)
        JournalDriver().turn()
        time_machine.pass_seconds(61)
        JournalDriver().turn()
        assert (agent.step().status, status()) == (S.UNCERTAIN, W.NEEDS_REVIEW)
        assert agent.record(fence, operation_id="crm-1").status_code == 409
        assert Case.objects.get().status == CaseStatus.SETTLED
        JournalDriver().turn()
        assert (agent.step().status, agent.step().operation_id) == (S.VERIFIED, "crm-1")

    def test_the_same_report_again_is_one_report(self, agent: Agent) -> None:
        fence = agent.begun()["fence"]
        first, again = (agent.record(fence, operation_id="crm-1", facts={"rows": 1}) for _ in range(2))
        assert (first.json(), again.status_code) == (again.json(), 200)
        assert Evidence.objects.filter(finding="receipt").count() == 1
        assert agent.record(fence, operation_id="crm-2").status_code == 409

    @pytest.mark.parametrize("outcome", ["not_applied", "unknown"])
    def test_also_a_report_without_receipt(self, agent: Agent, outcome: str) -> None:
        fence = agent.begun()["fence"]
        assert [agent.record(fence, outcome).status_code for _ in range(2)] == [200, 200]
        assert Evidence.objects.count() == 1

    def test_a_fence_that_nobody_was_given_and_another_account_are_refused(self, agent: Agent) -> None:
        fence = agent.begun()["fence"]
        assert agent.record(fence + 1).json()["code"] == "action_incomplete"
        assert Agent(bot("other")).record(fence).status_code == 403
        assert agent.step().status == S.STARTED

    def test_what_has_ended_is_not_begun(self, agent: Agent) -> None:
        agent.record(agent.begun()["fence"])
        refused = agent.begin().json()
        assert (refused["code"], "read its result" in refused["detail"]) == ("step_not_begun", True)
        agent.api.post(f"workflows/{Workflow.objects.get().pk}/abandonment/", {"reason": "No."})
        assert agent.begin("b").json()["code"] == "already_ending"

    def test_a_workers_step_is_not_the_agents(self, agent: Agent) -> None:
        step = factories.step(factories.workflow(team=factories.team("Default")), S.PREPARED)
        assert agent.api.post(f"steps/{step.pk}/begin/").json()["code"] == "step_not_begun"


class TestVanished:
    """The agent begins, and is never heard of again."""

    def test_what_nobody_can_look_up_is_asked_after_its_deadline(self, agent: Agent, time_machine: MovableTime) -> None:
        agent.begun(lease_seconds=5)
        worker = JournalDriver()
        time_machine.pass_seconds(6)
        assert worker.turn() == []
        assert (agent.step().status, Case.objects.count()) == (S.STARTED, 0)  # it may still be acting
        time_machine.pass_seconds(60)
        assert worker.turn() == []
        assert (agent.step().status, Case.objects.get().reason) == (S.UNCERTAIN, CaseReason.OUTCOME_UNKNOWN)
        assert agent.begin().json()["waits_for"] == "question"

    def test_said_to_be_unknown_is_asked_at_once(self, agent: Agent) -> None:
        agent.record(agent.begun()["fence"], "unknown")
        JournalDriver().turn()
        assert Case.objects.get().reason == CaseReason.OUTCOME_UNKNOWN

    def test_what_only_reads_is_its_turn_again(self, time_machine: MovableTime) -> None:
        register(recovery="read_only", reversibility="none_needed")
        agent = Agent()
        agent.submit("a")
        first = agent.begun()["fence"]
        time_machine.pass_seconds(61)
        JournalDriver().turn()
        assert (agent.step().status, status()) == (S.FAILED, W.AWAITING_AGENT)
        time_machine.pass_seconds(61)
        assert agent.begun()["fence"] > first

    def test_where_the_provider_knows_the_key_the_agent_sends_again(self, time_machine: MovableTime) -> None:
        register(recovery="idempotent")
        agent = Agent()
        agent.submit("a", agent_deadline=600)
        first = agent.begun()
        time_machine.pass_seconds(62)
        worker = JournalDriver()
        assert worker.turn() == []
        again = agent.begun()
        assert (again["idempotency_key"], again["attempt"]) == (first["idempotency_key"], 2)
        time_machine.pass_seconds(62)
        assert worker.turn() == []
        assert not Case.objects.exists()
        time_machine.pass_seconds(660)
        assert worker.turn() == []
        assert Case.objects.get().reason == CaseReason.OUTCOME_UNKNOWN

    def test_a_registered_lookup_finds_it_and_a_registered_reading_verifies_it(self, time_machine: MovableTime) -> None:
        contract = Contract(
            RecoveryClass.QUERYABLE, Reversibility.COMPENSABLE, deadline=60, settle=1, by_agent=True,
            can_inspect=True, can_verify=True,
        )  # fmt: skip
        declared = Declaration("default:crm.update", "1", "Known.", TOOL["schema"], (Variant("only", contract),))
        publish_tools([declared], actor=ACTOR)
        agent, worker = Agent(), JournalDriver("default:crm.update@1")
        agent.submit("a", "b")
        agent.begun()
        time_machine.pass_seconds(62)
        inspection = worker.claim(Activity.INSPECT)
        (verification,) = worker.report(inspection, Found(Receipt("crm-9")))
        worker.report(verification, Visible({"rows": 1}))
        assert (agent.step().status, agent.step().standing) == (S.VERIFIED, Standing.VERIFIED)
        agent.record(agent.begun("b")["fence"], name="b", reading={"mine": True})
        assert agent.step("b").status == S.COMMITTED
        worker.report(worker.claim(Activity.VERIFY), Visible({"rows": 1}))
        assert agent.step("b").standing == Standing.VERIFIED

    def test_who_never_begins_is_asked_about(self, agent: Agent, time_machine: MovableTime) -> None:
        JournalDriver().turn()
        time_machine.pass_seconds(86_401)
        JournalDriver().turn()
        assert (Case.objects.get().reason, status()) == (CaseReason.AGENT_SILENT, W.NEEDS_REVIEW)
        assert agent.begin().status_code == 201
        assert Case.objects.get().closing == "the agent came back"


class TestHolding:
    """The heartbeat."""

    def test_it_keeps_the_step_but_not_past_the_deadline(self, agent: Agent, time_machine: MovableTime) -> None:
        fence = agent.begun(lease_seconds=10)["fence"]
        for _ in range(5):
            time_machine.pass_seconds(9)
            held = agent.hold(fence, seconds=10)
            assert held.status_code == 200
            assert JournalDriver().turn() == []
            assert agent.step().fence == fence
        time_machine.pass_seconds(9)
        held = agent.hold(fence, seconds=60).json()
        assert held["lease_until"] == held["deadline_at"]
        time_machine.pass_seconds(9)
        over = agent.hold(fence)
        assert (over.status_code, over.json()["code"]) == (409, "fence_moved")

    def test_an_old_fence_holds_nothing(self, agent: Agent) -> None:
        fence = agent.begun()["fence"]
        assert agent.hold(fence + 1).status_code == 409
        agent.record(fence)
        assert agent.hold(fence).status_code == 409
        assert agent.hold(fence, seconds=1).json()["code"] == "action_incomplete"


class TestGates:
    """What a worker's start needs, a begin needs."""

    def test_s01_without_the_approval_nothing_is_begun(self, agent: Agent) -> None:
        approval_driver.ask()
        waiting = agent.begin().json()
        approval = approval_driver.pending(Workflow.objects.get())
        assert waiting["waits_for"] == "approval"
        assert waiting["look_at"].endswith(f"/api/v1/approvals/{approval.pk}/")
        assert (agent.step().status, status()) == (S.PREPARED, W.AWAITING_APPROVAL)
        assert agent.begin().json()["waits_for"] == "approval"
        assert JournalDriver().turn() == []
        approval_driver.answer(approval, approval_driver.approver())
        assert status() == W.AWAITING_AGENT
        agent.record(agent.begun()["fence"])
        approval.refresh_from_db()
        assert approval.status == "consumed"

    def test_a_request_that_nobody_answers_runs_out(self, agent: Agent, time_machine: MovableTime) -> None:
        approval_driver.ask(expires_seconds=60, on_timeout="reject")
        agent.begin()
        time_machine.pass_seconds(61)
        assert JournalDriver().turn() == []
        assert status() == W.ABANDONED

    def test_limits_hold(self, agent: Agent) -> None:
        approval_driver.in_force({"set": {"limits": {"in_flight": 1}}})
        agent.submit("c")
        agent.begun()
        assert agent.begin("c").json()["waits_for"] == "limit"
        agent.record(agent.step().fence)
        assert agent.begin("c").status_code == 201

    def test_one_intent_is_brought_about_once(self, agent: Agent) -> None:
        step = {"name": "x", "tool": "default:crm.update", "arguments": {"customer": "x"}, "intent": "crm/x"}
        for _ in range(2):
            agent.api.post("workflows/", {"goal": "Once.", "steps": [step]})
        first, second = Step.objects.filter(name="x").order_by("id")
        begun = agent.api.post(f"steps/{first.pk}/begin/").json()
        assert agent.api.post(f"steps/{second.pk}/begin/").json()["waits_for"] == "intent"
        receipt = {"fence": begun["fence"], "outcome": "receipt", "operation_id": "o"}
        agent.api.post(f"steps/{first.pk}/record/", receipt)
        taken = agent.api.post(f"steps/{second.pk}/begin/")
        second.refresh_from_db()
        assert (second.status, second.operation_id, taken.json()["waits_for"]) == (S.VERIFIED, "o", "nothing")

    def test_s25_who_may_not_submit_or_see_begins_nothing(self, agent: Agent) -> None:
        address = f"steps/{agent.step().pk}/begin/"
        eve = factories.person("eve", groups=["Agent"], teams=[factories.team("Other")])
        assert Api.of(eve).post(address).status_code == 404
        assert Api.of(factories.person("aud", groups=["Auditor"])).post(address).status_code == 403
        assert Api.of(agent.account, ["read"]).post(address).status_code == 403


class TestRegistering:
    """The contracts."""

    def test_only_who_may_register_does_and_other_teams_do_not_see_it(self, agent: Agent) -> None:
        assert agent.api.post("tools/", TOOL).status_code == 403
        eve = Api.of(factories.person("eve", groups=["Agent"], teams=[factories.team("Other")]))
        assert "default:crm.update" in [tool["name"] for tool in agent.api.get("tools/").json()]
        assert "default:crm.update" not in [tool["name"] for tool in eve.get("tools/").json()]
        assert eve.get("tools/default:crm.update/").status_code == 404
        steps = [{"name": "a", "tool": "default:crm.update", "arguments": {"customer": "a"}}]
        assert eve.post("workflows/", {"goal": "Theirs.", "steps": steps}).status_code == 422

    def test_the_same_again_is_no_new_version(self) -> None:
        register()
        register()
        assert ToolVersion.objects.filter(name="default:crm.update").count() == 1
        register(version="2", recovery="idempotent")
        assert ToolVersion.objects.filter(name="default:crm.update").count() == 2

    @pytest.mark.parametrize(
        ("wrong", "path"),
        [
            ({"name": "Crm"}, "/name"),
            ({"recovery": "queryable"}, "/recovery"),
            ({"reversibility": "maybe"}, "/reversibility"),
            ({"deadline": 0}, "/deadline"),
            ({"deadline": True}, "/deadline"),
            ({"key_lifetime": -1}, "/key_lifetime"),
            ({"schema": {"type": "nothing"}}, "/schema"),
            ({"schema": {"properties": {"a": {"pattern": "("}}}}, "/schema"),
            ({"link": "javascript:x"}, "/link"),
            ({"by_agent": False}, "/by_agent"),
        ],
    )
    def test_a_contract_with_faults_says_them(self, wrong: dict[str, Any], path: str) -> None:
        operator = factories.person("olga", groups=["Operator"], teams=[factories.team("Default")])
        answered = Api.of(operator).post("tools/", {**TOOL, **wrong})
        assert (answered.status_code, answered.json()["faults"][0]["path"]) == (422, path)
        assert not ToolVersion.objects.exists()

    def test_by_command(self, tmp_path: Path) -> None:
        file = tmp_path / "tool.json"
        file.write_text(json.dumps(TOOL))
        assert run("tool", "register", str(file)).out.startswith("In force: default:crm.update@1")
        file.write_text(json.dumps({**TOOL, "deadline": 0}))
        assert run("tool", "register", str(file)).code == 2


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"outcome": "done"}, "/outcome"),
        ({"fence": "1"}, "/fence"),
        ({"facts": {"x": "y" * 20_000}}, "/facts"),
        ({"facts": []}, "/facts"),
        ({"outcome": "unknown", "message": 7}, "/message"),
        ({"outcome": "not_applied", "message": "m", "retry_after": -1}, "/retry_after"),
        ({"receipt": 1}, "/receipt"),
    ],
)
def test_a_report_with_faults_says_them(agent: Agent, wrong: dict[str, Any], path: str) -> None:
    fence = agent.begun()["fence"]
    answered = agent.api.post(f"steps/{agent.step().pk}/record/", {"fence": fence, "outcome": "receipt", **wrong})
    assert (answered.status_code, answered.json()["faults"][0]["path"]) == (422, path)
    assert agent.step().status == S.STARTED


def test_what_is_told(agent: Agent) -> None:
    JournalDriver().turn()
    told = run("explain", str(Workflow.objects.get().pk)).out
    assert "It waits for its agent to carry out a step." in told
    assert "its agent begins it" in told
    agent.begun()
    assert "its agent is acting on it" in run("explain", str(Workflow.objects.get().pk)).out


def test_the_law_keeps_who_acts(agent: Agent, raw: RawSession) -> None:
    assert raw.updates("checkpoint_step", agent.step().pk, by_agent=False) == "who_acts_is_fixed"
