"""Named intents: one effect for every step that wants it, whoever comes first, whatever becomes of the owner."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, connection

from checkpoint import leases, workflows
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.contracts import Contract, Variant
from checkpoint.errors import CheckpointError, EditRefused, SubmissionInvalid
from checkpoint.explaining.explanations import explain
from checkpoint.models import Attempt, Case, Evidence, Intent, Step, Team, Workflow
from checkpoint.outcomes import NotVisible, OutcomeUnknown, Receipt, Refused, Visible
from checkpoint.people import Actor
from checkpoint.rows.workflow_records import load
from checkpoint.states import CaseReason, CaseStatus, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.tool_versions import Declaration, newest_tools
from checkpoint.turns.calls import Claim
from tests import factories, flush
from tests.approval_driver import ask, in_force, pending
from tests.console_driver import signed_in
from tests.journal_driver import KEYED, OPAQUE, VERIFIABLE, JournalDriver, answer, case, effect, step, submit
from tests.submissions import ACTOR, INVOICE_SCHEMA, document, plan_of, published
from tests.test_commands import run
from tests.test_edits import edit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

S, W = StepStatus, WorkflowStatus
NAME = "invoice/acme/2026-11"


def named(name: str = "effect", **arguments: Any) -> dict[str, Any]:
    return effect(name, **arguments) | {"intent": NAME}


def want(promises: Contract = OPAQUE, *steps: dict[str, Any]) -> Workflow:
    return submit(promises, *(steps or (named(),)))


def referring(name: str = "effect") -> dict[str, Any]:
    """Its arguments are known once `first` is verified."""
    return named(name, customer={"$result": "first#/facts/customer"})


def abandon(workflow: Workflow) -> None:
    workflows.abandon(workflow_id=workflow.pk, actor=ACTOR, reason="no longer wanted")


def turns(driver: JournalDriver) -> list[Claim]:
    """The calls that there are, until nothing moves any more."""
    claims: list[Claim] = []
    for _ in range(6):
        claims += driver.turn()
    return claims


def carry_out(driver: JournalDriver, facts: dict[str, Any]) -> list[str]:
    """Makes every call that there is, with success; the keys in their order."""
    sent: list[str] = []
    open_calls = turns(driver)
    while open_calls:
        claim = open_calls.pop()
        sent.append(claim.idempotency_key)
        open_calls += driver.report(claim, Receipt(f"op{len(sent)}", facts))
        open_calls += [] if open_calls else turns(driver)
    return sent


def status(workflow: Workflow) -> str:
    return str(Workflow.objects.get(pk=workflow.pk).status)


def test_the_second_workflow_waits_for_the_first_and_takes_its_receipt() -> None:
    first, second, driver = want(VERIFIABLE), want(VERIFIABLE), JournalDriver()
    (claim,) = turns(driver)
    assert step(second).waits_for == Intent.objects.get(name=NAME)
    assert (claim.workflow_id, step(second).status) == (first.pk, S.PREPARED)
    (reading,) = driver.report(claim, Receipt("inv_7", {"number": 7}))
    driver.report(reading, Visible())
    assert turns(driver) == []
    owner, taker = step(first), step(second)
    assert (taker.status, taker.standing, taker.operation_id) == (S.VERIFIED, "verified", "inv_7")
    assert taker.idempotency_key == owner.idempotency_key == Intent.objects.get().key
    seen = Evidence.objects.get(step=taker)
    assert taker.receipt == seen != owner.receipt
    assert (seen.kind, seen.facts, f"step effect of workflow {first.pk}" in seen.source) == (
        "intent", '{"number":7}', True,
    )  # fmt: skip
    assert status(second) == W.COMPLETED
    assert Attempt.objects.count() == 1


def test_one_that_comes_after_the_effect_takes_the_receipt_without_a_call_and_without_the_tool() -> None:
    first, driver = want(), JournalDriver()
    driver.report(driver.claim(), Receipt("ch_1"))
    assert status(first) == W.COMPLETED
    second = want(OPAQUE, named("other"), effect("after", cents=9))
    assert [claim.step_name for claim in turns(JournalDriver("another@1", "effect@1"))] == ["after"]
    assert (step(second, "other").operation_id, step(second, "other").standing) == ("ch_1", "receipt_only")


def test_two_steps_of_one_workflow_that_name_one_intent_make_one_call() -> None:
    workflow, driver = want(KEYED, named("a"), named("b"), named("c") | {"position": 2}), JournalDriver()
    (claim,) = turns(driver)
    driver.report(claim, Receipt("inv_1"))
    assert turns(driver) == []
    assert {one.operation_id for one in workflow.steps.all()} == {"inv_1"}
    assert status(workflow) == W.COMPLETED


def test_a_name_stands_for_one_call_and_others_are_refused_with_both_shown() -> None:
    first = want(OPAQUE, named(customer="acme"))
    with pytest.raises(SubmissionInvalid) as refusal:
        want(OPAQUE, effect("x", cents=3), named(customer="other\u202e"))
    (fault,) = refusal.value.faults
    assert fault.path == "/steps/1/intent"
    assert f"step effect of workflow {first.pk}" in fault.message
    assert '"customer":"acme"' in fault.message
    assert '"customer":"other[U+202E]"' in fault.message
    assert Workflow.objects.count() == 1
    tool_versions_own = submit(KEYED, effect() | {"intent": "another"})
    assert Intent.objects.filter(owner__workflow=tool_versions_own).count() == 1


def test_names_belong_to_a_team_and_nothing_is_told_across() -> None:
    first = want(OPAQUE, named(customer="secret"))
    team = factories.team("Elsewhere")
    tools = plan_of(document(named(customer="acme")), newest_tools())
    second = workflows.submit(tools, team=team, actor=ACTOR)
    assert len(turns(JournalDriver())) == 2
    assert step(first).idempotency_key != step(second).idempotency_key
    assert Team.objects.get(slug="elsewhere").intent_set.count() == 1


@pytest.mark.parametrize("name", [" ", "a b", "/x", "x" * 201, "é", "<b>"])
def test_what_is_no_name_is_refused_at_its_place(name: str) -> None:
    with pytest.raises(SubmissionInvalid, match="/steps/0/intent: must be a name such as invoice"):
        submit(OPAQUE, effect() | {"intent": name})


def test_arguments_known_later_that_mean_something_else_become_a_question() -> None:
    want(OPAQUE, named(customer="acme"))
    late, driver = want(OPAQUE, effect("first", cents=5), referring()), JournalDriver()
    claims = {claim.workflow_id: claim for claim in turns(driver)}
    driver.report(claims[late.pk], Receipt("x", {"customer": "beta"}))
    turns(driver)
    asked = case(late)
    assert (asked.reason, step(late).status) == (CaseReason.PLAN_INVALID, S.PLANNED)
    told = " ".join(asked.findings["known"])
    assert '"customer":"acme"' in told
    assert '"customer":"beta"' in told


def test_arguments_known_later_that_mean_the_same_take_the_receipt() -> None:
    first, late, driver = want(), want(OPAQUE, effect("first", cents=5), referring()), JournalDriver()
    for claim in turns(driver):
        driver.report(claim, Receipt("op", {"customer": "acme"}))
    assert turns(driver) == []
    assert step(late).receipt != step(first).receipt
    assert step(late).idempotency_key == step(first).idempotency_key


def test_whose_turn_has_come_goes_before_an_owner_whose_turn_has_not_so_nobody_waits_in_a_ring() -> None:
    def plan(one: str, other: str) -> list[dict[str, Any]]:
        late = effect("b", cents=2, customer={"$result": "a#/facts/customer"})
        return [effect("a", cents=1), late | {"intent": one}, effect("c", cents=2) | {"intent": other}]

    left, right, driver = submit(KEYED, *plan("x", "y")), submit(KEYED, *plan("y", "x")), JournalDriver()
    assert {one.owner.name for one in Intent.objects.exclude(name="")} == {"c"}
    sent = carry_out(driver, {"customer": "acme"})
    assert [status(left), status(right)] == [W.COMPLETED, W.COMPLETED]
    assert len(sent) == len(set(sent)) == 4


class TestOwners:
    """What becomes of those who wait when the owner does not get there."""

    def test_abandoned_before_it_was_sent_it_passes_the_intent_on(self) -> None:
        ask()
        first, second, driver = want(), want(), JournalDriver()
        assert turns(driver) == []
        assert {one.workflow_id for one in [pending(first)]} == {first.pk}
        key = step(first).idempotency_key
        abandon(first)
        in_force()
        (claim,) = turns(driver)
        assert (claim.workflow_id, claim.idempotency_key) == (second.pk, key)
        assert Intent.objects.get().owner == step(second)

    def test_abandoned_after_it_was_sent_it_closes_the_intent(self) -> None:
        first, second, driver = want(), want(), JournalDriver()
        (claim,) = turns(driver)
        driver.report(claim, OutcomeUnknown("cut"))
        turns(driver)
        assert status(second) in (W.PLANNED, W.EXECUTING)
        answer(case(first), DecisionKind.ABANDON)
        assert turns(driver) == []
        assert case(second).reason == CaseReason.PLAN_INVALID
        assert "is closed: step effect of workflow" in " ".join(case(second).findings["known"])
        with pytest.raises(SubmissionInvalid, match="was sent, and then abandoned"):
            want()
        answer(case(second), DecisionKind.RETRY)
        assert turns(driver) == []
        assert Case.objects.filter(workflow=second, status=CaseStatus.OPEN).count() == 1

    def test_uncertain_it_is_waited_for_until_a_person_confirms_and_then_stands_as_attested(self) -> None:
        first, second, driver = want(), want(), JournalDriver()
        (claim,) = turns(driver)
        driver.report(claim, OutcomeUnknown("cut"))
        turns(driver)
        assert leases.wake_workflows_left_alone() == 0
        answer(case(first), DecisionKind.CONFIRM, operation_id="ch_9")
        assert turns(driver) == []
        assert (step(second).status, step(second).standing, step(second).operation_id) == (
            S.VERIFIED, "attested", "ch_9",
        )  # fmt: skip

    def test_failed_it_is_waited_for_and_tried_again_under_the_one_key(self, time_machine: MovableTime) -> None:
        _, second, driver = want(KEYED), want(KEYED), JournalDriver()
        (claim,) = turns(driver)
        driver.report(claim, Refused("not now"))
        assert turns(driver) == []
        time_machine.pass_seconds(5)
        (again,) = turns(driver)
        assert (again.workflow_id, again.idempotency_key) == (claim.workflow_id, claim.idempotency_key)
        driver.report(again, Receipt("inv"))
        turns(driver)
        assert status(second) == W.COMPLETED

    def test_not_visible_it_is_waited_for(self, time_machine: MovableTime) -> None:
        _, second, driver = want(VERIFIABLE), want(VERIFIABLE), JournalDriver()
        (claim,) = turns(driver)
        (reading,) = driver.report(claim, Receipt("inv"))
        driver.report(reading, NotVisible("not yet"))
        turns(driver)
        assert step(second).status == S.PREPARED
        time_machine.pass_seconds(2)
        (reading,) = turns(driver)
        driver.report(reading, Visible())
        turns(driver)
        assert step(second).status == S.VERIFIED

    def test_edited_it_needs_another_name_and_the_old_one_passes_on(self) -> None:
        ask()
        first, second, driver = want(), want(), JournalDriver()
        turns(driver)
        with pytest.raises(EditRefused, match=r"already stands for other arguments.*Name another intent"):
            edit(first, {"customer": "acme", "cents": 2})
        with pytest.raises(SubmissionInvalid, match="must be a name"):
            edit(first, {"customer": "acme", "cents": 2}, intent="a b")
        edit(first, {"customer": "acme", "cents": 2}, intent=f"{NAME}/smaller")
        in_force()
        assert {claim.workflow_id for claim in turns(driver)} == {first.pk, second.pk}
        assert Intent.objects.get(name=NAME).owner == step(second)

    def test_with_a_damaged_receipt_nothing_is_taken(self, database: Addresses) -> None:
        driver = JournalDriver()
        want()
        driver.report(driver.claim(), Receipt("op", {"number": 7}))
        flush.step_over_the_law(database.superuser, "UPDATE checkpoint_evidence SET facts = '{}'")
        second = want()
        assert turns(driver) == []
        assert (step(second).status, case(second).reason) == (S.PREPARED, CaseReason.RECORD_DAMAGED)


def test_a_wake_that_was_lost_is_made_good_by_the_sweeper(monkeypatch: pytest.MonkeyPatch) -> None:
    _, second, driver = want(), want(), JournalDriver()
    (claim,) = turns(driver)
    monkeypatch.setattr("checkpoint.rows.workflow_rows.wake_waiters", lambda owners: 0)
    driver.report(claim, Receipt("op"))
    assert turns(driver) == []
    assert step(second).status == S.PREPARED
    assert leases.wake_workflows_left_alone() == 1
    assert leases.anything_due()
    assert turns(driver) == []
    assert step(second).status == S.VERIFIED


def test_while_one_waits_nothing_is_looked_at_again() -> None:
    want(), want()
    driver = JournalDriver()
    turns(driver)
    assert Workflow.objects.get(pk=step(Workflow.objects.latest("id")).workflow_id).wake_at is None
    version = Workflow.objects.latest("id").version
    turns(driver)
    assert leases.wake_workflows_left_alone() == 0
    assert Workflow.objects.latest("id").version == version


def test_where_it_waits_is_told_by_explain_and_on_the_page() -> None:
    first, second = want(), want()
    turns(JournalDriver())
    words = f"waits for step effect of workflow {first.pk}"
    assert words in explain(load(second)).steps[0].outlook.words
    assert f"next: {words}" in run("explain", str(second.pk)).out
    page = signed_in(factories.person("ann", groups=["Auditor"])).get(f"/workflows/{second.pk}/").text
    assert f'href="/workflows/{first.pk}/#step-{step(first).pk}">step effect</a>' in page
    assert NAME in page


def test_two_submissions_at_once_have_one_owner_and_make_one_call() -> None:
    plan = plan_of(document(named(), effect("b", cents=2) | {"intent": "b"}), _published())
    other = plan_of(document(effect("b", cents=2) | {"intent": "b"}, named()), _published())
    team = Team.objects.get(slug="default")

    def press(number: int) -> None:
        try:
            workflows.submit(plan if number % 2 else other, team=team, actor=Actor(f"p{number}", "command"))
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(press, range(12)))
    drivers = [JournalDriver() for _ in range(4)]

    def work(driver: JournalDriver) -> list[str]:
        try:
            return carry_out(driver, {})
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        sent = [key for keys in pool.map(work, drivers) for key in keys]
    assert sorted(sent) == sorted(Intent.objects.values_list("key", flat=True))
    turns(drivers[0])
    assert set(Workflow.objects.values_list("status", flat=True)) == {W.COMPLETED}


def _published() -> Any:
    return published(Declaration("effect", "1", "An effect.", INVOICE_SCHEMA, (Variant("only", OPAQUE),)))


class TestLaws:
    """PostgreSQL refuses what would let two steps send under one intent."""

    def test_only_the_owner_starts(self) -> None:
        want(), want()
        turns(JournalDriver())
        waiting = step(Workflow.objects.latest("id"))
        with pytest.raises(IntegrityError, match="law intent_owner_starts"):
            Step.objects.filter(pk=waiting.pk).update(status="started", fence=1)
        with pytest.raises(IntegrityError, match="law receipt_is_owners"):
            Step.objects.filter(pk=waiting.pk).update(status="verified")
        with pytest.raises(IntegrityError, match="law intent_passes_unsent"):
            Intent.objects.filter(name=NAME).update(owner=waiting)

    def test_an_intent_stays_what_it_is(self) -> None:
        want()
        with pytest.raises(IntegrityError, match="law intent_name_is_fixed"):
            Step.objects.update(intent_name="x")
        unrelated = submit(OPAQUE, effect(cents=5))
        with pytest.raises(IntegrityError, match="law intent_owner_has_key"):
            Intent.objects.filter(name=NAME).update(owner=step(submit(OPAQUE, effect(cents=6) | {"intent": "z"})))
        with pytest.raises(IntegrityError, match="law intent_passes_unsent"):
            Intent.objects.filter(owner=step(unrelated)).update(owner=step(Workflow.objects.earliest("id")))


class _History:
    """Workflows that name few intents, and everything that can happen to them."""

    def __init__(self, seed: int, time_machine: MovableTime) -> None:
        self.random, self.time = random.Random(seed), time_machine
        self.drivers = [JournalDriver(), JournalDriver()]
        self.calls: list[tuple[JournalDriver, Claim]] = []
        self.took_effect: dict[str, int] = {}

    def happen(self) -> None:
        often = [self.turn, self.turn, self.turn, self.reply, self.reply]
        event: Callable[[], None] = self.random.choice([*often, self.submit, self.abandon, self.decide, self.wait])
        with suppress(CheckpointError):
            event()

    def submit(self) -> None:
        names = [self.random.choice("xyz") for _ in range(self.random.randint(1, 3))]
        steps = [effect(f"s{i}", cents=ord(name)) | {"intent": name} for i, name in enumerate(names)]
        submit(OPAQUE, *steps)

    def turn(self) -> None:
        driver = self.random.choice(self.drivers)
        for claim in driver.turn():
            self.calls.append((driver, claim))

    def reply(self) -> None:
        """The provider carried it out, refused it, or did either and nobody heard."""
        if not self.calls:
            return
        driver, claim = self.calls.pop(self.random.randrange(len(self.calls)))
        happened, heard = self.random.random() < 0.7, self.random.random() < 0.6
        if happened:
            self.took_effect[claim.idempotency_key] = self.took_effect.get(claim.idempotency_key, 0) + 1
        if self.random.random() < 0.1:
            return  # killed
        outcome = (Receipt("op") if happened else Refused("no")) if heard else OutcomeUnknown("cut")
        for more in driver.report(claim, outcome):
            self.calls.append((driver, more))

    def abandon(self) -> None:
        if workflow := self.random.choice([*Workflow.objects.all()] or [None]):
            abandon(workflow)

    def decide(self) -> None:
        """As a person who looked: what happened is confirmed, what did not is tried again or given up."""
        if asked := Case.objects.filter(status=CaseStatus.OPEN).select_related("step").first():
            happened = asked.step.idempotency_key in self.took_effect
            if asked.reason in (CaseReason.PLAN_INVALID, CaseReason.RETRIES_EXHAUSTED):
                answer(asked, DecisionKind.ABANDON)
            else:
                still = [claim for _, claim in self.calls if claim.step_id == asked.step_id]
                kinds = [DecisionKind.CONFIRM] if happened else [DecisionKind.RETRY, DecisionKind.ABANDON]
                if not still:
                    answer(asked, self.random.choice(kinds))

    def wait(self) -> None:
        self.time.pass_seconds(self.random.choice([1, 50]))


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_an_intent_has_at_most_one_effect_and_nobody_is_left_waiting(
    seed: int, time_machine: MovableTime
) -> None:
    history = _History(seed, time_machine)
    for _ in range(70):
        history.happen()
        assert all(count == 1 for count in history.took_effect.values()), f"seed {seed}: {history.took_effect}"
    for _ in range(40):
        history.wait()
        leases.wake_workflows_left_alone()
        for driver in history.drivers:
            for claim in driver.turn():
                history.calls.append((driver, claim))
        while history.calls:
            history.reply()
        history.decide()
    assert all(count == 1 for count in history.took_effect.values()), f"seed {seed}: {history.took_effect}"
    for waiting in Step.objects.filter(waits_for__isnull=False, status=S.PREPARED).select_related("waits_for__owner"):
        assert waiting.waits_for is not None
        assert waiting.waits_for.owner.status not in (S.VERIFIED, S.ABANDONED, S.SUPERSEDED), f"seed {seed}"


@pytest.mark.parametrize("name", ["", " ", "a b", None, 7])
def test_a_name_that_is_none_is_refused_and_never_taken_for_no_intent(name: Any) -> None:
    with pytest.raises(SubmissionInvalid, match="/steps/0/intent"):
        submit(KEYED, {**effect(), "intent": name})
