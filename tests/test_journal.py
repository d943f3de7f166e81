"""The journal's verbs, one turn at a time: what is claimed, what a report writes, and what an old fence may not."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections

from checkpoint import leases
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.errors import ValueNotCanonical
from checkpoint.explaining.explanations import explain
from checkpoint.gates.jitter import share_of
from checkpoint.models import Activity, Attempt, AuditEntry, Case, Evidence, Intent, Workflow
from checkpoint.outcomes import (
    Absent,
    Found,
    Inconclusive,
    NotVisible,
    OutcomeUnknown,
    Pending,
    Receipt,
    Refused,
    Visible,
)
from checkpoint.rows.attempt_log import WAIT_FOR_WORD
from checkpoint.rows.workflow_records import load
from checkpoint.states import CaseReason, CaseStatus, Standing, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.turns.calls import Claim
from tests import flush
from tests.approval_driver import in_force
from tests.journal_driver import (
    DEADLINE,
    KEYED,
    OPAQUE,
    QUERYABLE,
    READ_ONLY,
    SETTLE,
    VERIFIABLE,
    JournalDriver,
    answer,
    case,
    effect,
    step,
    submit,
)
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

LEASE_SECONDS = 15.0
QUIET = DEADLINE + SETTLE


def status(workflow: Workflow) -> WorkflowStatus:
    workflow.refresh_from_db()
    return WorkflowStatus(workflow.status)


def verbs(workflow: Workflow) -> list[str]:
    return list(AuditEntry.objects.filter(stream_id=workflow.pk).order_by("seq").values_list("verb", flat=True))


class TestClaiming:
    def test_a_claim_writes_the_attempt_the_fence_and_the_lease_before_anything_is_sent(self) -> None:
        workflow, driver = submit(KEYED), JournalDriver()
        claim = driver.claim()
        row = step(workflow)
        attempt = Attempt.objects.get(step=row)
        assert (row.status, row.fence, row.lease_holder_id) == (StepStatus.STARTED, claim.fence, driver.worker.id)
        assert (attempt.number, attempt.fence, attempt.ended_at) == (1, claim.fence, None)
        assert claim.idempotency_key == row.idempotency_key == Intent.objects.get(owner=row).key

    def test_what_is_held_is_claimed_by_nobody_else(self) -> None:
        submit(KEYED)
        JournalDriver().claim()
        assert JournalDriver().turn() == []

    def test_no_more_is_claimed_than_there_are_hands(self) -> None:
        for _ in range(3):
            submit(KEYED, effect("one", cents=1) | {"position": 1}, effect("two", cents=2) | {"position": 1})
        driver = JournalDriver()
        assert [len(driver.turn(hands=4)), len(driver.turn(hands=4)), len(driver.turn(hands=4))] == [4, 2, 0]

    def test_a_batch_runs_side_by_side_and_the_next_position_waits_for_all_of_it(self) -> None:
        batch = [effect(name, cents=n) | {"position": 1} for n, name in enumerate(("one", "two"), 1)]
        workflow, driver = submit(KEYED, *batch, effect("after", cents=3)), JournalDriver()
        one, two = driver.turn()
        assert driver.report(one, Receipt()) == []
        (after,) = driver.report(two, Receipt())
        assert after.step_name == "after"
        assert status(workflow) == WorkflowStatus.EXECUTING

    def test_s05_s06_of_two_recoverers_in_the_same_moment_one_claims(self) -> None:
        for _ in range(20):
            submit(KEYED)
            drivers, claims = [JournalDriver(), JournalDriver()], list[Claim]()
            barrier = threading.Barrier(2)

            def race(driver: JournalDriver, barrier: Any = barrier, claims: list[Claim] = claims) -> None:
                barrier.wait()
                claims.extend(driver.turn())
                connections.close_all()

            threads = [threading.Thread(target=race, args=(driver,)) for driver in drivers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(claims) == 1
        assert Attempt.objects.count() == 20

    def test_a_step_whose_tool_no_worker_has_becomes_a_question(self) -> None:
        workflow = submit(KEYED)
        assert JournalDriver("other@1").turn() == []
        assert (case(workflow).reason, status(workflow)) == (CaseReason.TOOL_CHANGED, WorkflowStatus.NEEDS_REVIEW)

    def test_a_step_whose_tool_another_worker_has_is_left_to_it(self, time_machine: MovableTime) -> None:
        workflow, able = submit(KEYED), JournalDriver()
        assert JournalDriver("other@1").turn() == []
        assert not Case.objects.exists()
        time_machine.pass_seconds(6)
        able.claim()
        assert status(workflow) == WorkflowStatus.EXECUTING


class TestReceipts:
    def test_a_receipt_without_a_reading_ends_verified_as_receipt_only(self) -> None:
        workflow, driver = submit(KEYED), JournalDriver()
        driver.report(driver.claim(), Receipt(operation_id="op1", facts={"number": 7}))
        row = step(workflow)
        assert (row.status, row.standing, row.operation_id) == (StepStatus.VERIFIED, Standing.RECEIPT_ONLY, "op1")
        assert row.receipt is not None
        assert row.receipt.facts == '{"number":7}'
        assert status(workflow) == WorkflowStatus.COMPLETED

    def test_a_reading_follows_under_the_same_fence_with_the_receipt_s_facts(self) -> None:
        workflow, driver = submit(VERIFIABLE), JournalDriver()
        claim = driver.claim()
        (verification,) = driver.report(claim, Receipt(facts={"number": 7}))
        assert status(workflow) == WorkflowStatus.VERIFYING
        assert (verification.activity, verification.fence, verification.facts) == (
            Activity.VERIFY,
            claim.fence,
            '{"number":7}',
        )
        driver.report(verification, Visible({"seen": True}))
        assert (step(workflow).standing, status(workflow)) == (Standing.VERIFIED, WorkflowStatus.COMPLETED)

    def test_a_later_step_gets_an_earlier_one_s_result(self) -> None:
        reference = {"$result": "effect#/facts/number"}
        workflow, driver = submit(KEYED, effect(), effect("next", cents=reference)), JournalDriver()
        (following,) = driver.report(driver.claim(), Receipt(facts={"number": 7}))
        assert following.arguments == '{"cents":7,"customer":"acme","urgent":false}'
        assert step(workflow, "next").status == StepStatus.STARTED

    def test_a_result_that_does_not_fit_becomes_a_question_and_nothing_runs(self) -> None:
        reference = {"$result": "effect#/facts/number"}
        workflow, driver = submit(KEYED, effect(), effect("next", cents=reference)), JournalDriver()
        assert driver.report(driver.claim(), Receipt(facts={"number": "seven"})) == []
        assert case(workflow).reason == CaseReason.PLAN_INVALID
        assert step(workflow, "next").status == StepStatus.PLANNED
        assert driver.turn() == []

    def test_s03_a_damaged_result_becomes_a_question_and_nothing_runs(self, database: Addresses) -> None:
        reference = {"$result": "first#/facts/number"}
        steps = [effect("first"), effect("second", cents=2), effect("third", cents=reference)]
        workflow, driver = submit(KEYED, *steps), JournalDriver()
        (second,) = driver.report(driver.claim(), Receipt(facts={"number": 7}))
        flush.step_over_the_law(database.superuser, "UPDATE checkpoint_evidence SET facts = '{\"number\":8}'")
        assert driver.report(second, Receipt()) == []
        assert (case(workflow).reason, status(workflow)) == (CaseReason.RECORD_DAMAGED, WorkflowStatus.NEEDS_REVIEW)


class TestRefusals:
    def test_a_refusal_is_tried_again_with_the_same_key_after_the_wait(self, time_machine: MovableTime) -> None:
        workflow, driver = submit(OPAQUE), JournalDriver()
        first = driver.claim()
        assert driver.report(first, Refused("busy")) == []
        assert (step(workflow).status, status(workflow)) == (StepStatus.FAILED, WorkflowStatus.FAILED_RETRYABLE)
        time_machine.pass_seconds(2)
        second = driver.claim()
        assert (second.attempt_number, second.idempotency_key) == (2, first.idempotency_key)
        assert second.fence > first.fence

    def test_retry_after_is_honoured(self, time_machine: MovableTime) -> None:
        submit(OPAQUE)
        driver = JournalDriver()
        driver.report(driver.claim(), Refused("slow down", retry_after=100))
        time_machine.pass_seconds(90)
        assert driver.turn() == []
        time_machine.pass_seconds(11)
        driver.claim()

    def test_retry_after_is_a_minimum_beside_the_policy_s_own_wait(self) -> None:
        """Whatever share the policy waits: the later of the two counts, and a date in the past counts for nothing."""
        in_force(retry_base=1000, retry_cap=1000)
        waits = []
        for retry_after in (0.0, -5.0, None, 50_000.0):
            workflow, driver = submit(OPAQUE), JournalDriver()
            driver.report(driver.claim(), Refused("slow down", retry_after=retry_after))
            tried = step(workflow)
            ended = Attempt.objects.get(step=tried).ended_at
            assert tried.next_at is not None
            assert ended is not None
            waits.append(((tried.next_at - ended).total_seconds(), 1000 * share_of(tried.pk, 1)))
        assert [wait for wait, _ in waits[:3]] == pytest.approx([own for _, own in waits[:3]])
        assert waits[3][0] == pytest.approx(50_000)

    def test_the_budget_of_time_is_spent_before_that_of_attempts(self, time_machine: MovableTime) -> None:
        in_force(max_attempts=50, retry_deadline=300)
        workflow, driver = submit(OPAQUE), JournalDriver()
        for _ in range(3):
            driver.report(driver.claim(), Refused("busy"))
            time_machine.pass_seconds(100)
        assert driver.turn() == []
        assert case(workflow).reason == CaseReason.RETRIES_EXHAUSTED
        answer(case(workflow), DecisionKind.RETRY)
        driver.report(driver.claim(), Refused("busy", retry_after=200))
        time_machine.pass_seconds(201)
        driver.report(driver.claim(), Refused("busy", retry_after=200))
        time_machine.pass_seconds(201)
        assert driver.turn() == []
        assert Case.objects.get(workflow=workflow, status=CaseStatus.OPEN).reason == CaseReason.RETRIES_EXHAUSTED

    def test_a_spent_budget_becomes_a_question_and_retry_grants_it_anew(self, time_machine: MovableTime) -> None:
        workflow, driver = submit(OPAQUE), JournalDriver()
        for _ in range(3):
            driver.report(driver.claim(), Refused("busy"))
            time_machine.pass_seconds(100)
        assert driver.turn() == []
        assert case(workflow).reason == CaseReason.RETRIES_EXHAUSTED
        answer(case(workflow), DecisionKind.RETRY)
        assert driver.claim().attempt_number == 4

    def test_a_permanent_refusal_asks_at_once(self, time_machine: MovableTime) -> None:
        workflow, driver = submit(OPAQUE), JournalDriver()
        driver.report(driver.claim(), Refused("no such customer", permanent=True))
        time_machine.pass_seconds(2)
        assert driver.turn() == []
        asked = case(workflow)
        assert asked.reason == CaseReason.RETRIES_EXHAUSTED
        assert asked.findings["tried"][1].startswith("1 of 1 tries is used, the policy's 3 cut short by a refusal")

    def test_what_was_tried_names_the_budget_of_attempts_and_of_time(self, time_machine: MovableTime) -> None:
        in_force(max_attempts=2, retry_deadline=300)
        workflow, driver = submit(OPAQUE), JournalDriver()
        for _ in range(2):
            driver.report(driver.claim(), Refused("busy"))
            time_machine.pass_seconds(100)
        ends_at = Attempt.objects.get(step=step(workflow), number=1).started_at + timedelta(seconds=300)
        said = f"2 of 2 tries are used, and the time for them is over at {ends_at:%Y-%m-%d %H:%M:%S} UTC"
        assert explain(load(workflow)).steps[0].tries == said
        assert driver.turn() == []
        assert case(workflow).findings["tried"][1] == f"{said}."

    def test_a_refusal_that_comes_late_is_heeded_like_any_other(self, time_machine: MovableTime) -> None:
        workflow, late = submit(OPAQUE), JournalDriver()
        claim = late.claim()
        time_machine.pass_seconds(DEADLINE + 100)
        _without_a_word(JournalDriver(), time_machine)
        assert case(workflow).reason == CaseReason.OUTCOME_UNKNOWN
        late.report(claim, Refused("no such customer", permanent=True))
        time_machine.pass_seconds(5)
        assert JournalDriver().turn() == []
        assert Case.objects.get(workflow=workflow, status=CaseStatus.OPEN).reason == CaseReason.RETRIES_EXHAUSTED

    def test_a_refusal_speaks_of_its_own_attempt_alone(self, time_machine: MovableTime) -> None:
        """The first send's fate is unknown; the second's refusal does not make it undone."""
        workflow, driver = submit(KEYED), JournalDriver()
        driver.report(driver.claim(), OutcomeUnknown("connection lost"))
        time_machine.pass_seconds(QUIET + 1)
        second = driver.claim()
        driver.report(second, Refused("in progress"))
        assert step(workflow).status == StepStatus.STARTED


class TestLostCalls:
    def test_an_opaque_call_without_an_answer_becomes_one_question_at_once(self) -> None:
        workflow, driver = submit(OPAQUE), JournalDriver()
        assert driver.report(driver.claim(), OutcomeUnknown("connection lost")) == []
        asked = case(workflow)
        assert (asked.reason, step(workflow).status) == (CaseReason.OUTCOME_UNKNOWN, StepStatus.UNCERTAIN)
        assert asked.findings["said"] == "connection lost"
        assert driver.turn() == []

    def test_an_opaque_call_of_a_dead_worker_is_not_judged_before_its_deadline(self, time_machine: MovableTime) -> None:
        workflow, dead = submit(OPAQUE), JournalDriver()
        dead.claim()
        leases.end_process(dead.worker.id, ending="died")
        other = JournalDriver()
        assert other.turn() == []
        assert not Case.objects.exists()
        time_machine.pass_seconds(DEADLINE + 1)
        assert other.turn() == []
        assert case(workflow).reason == CaseReason.OUTCOME_UNKNOWN

    def test_a_dead_worker_s_queryable_call_is_looked_up_at_once(self) -> None:
        submit(QUERYABLE)
        dead, other = JournalDriver(), JournalDriver()
        claim = dead.claim()
        leases.end_process(dead.worker.id, ending="died")
        assert other.claim(Activity.INSPECT).fence > claim.fence

    def test_s08_s09_absence_counts_only_when_no_request_can_land_any_more(self, time_machine: MovableTime) -> None:
        workflow, driver = submit(QUERYABLE), JournalDriver()
        (inspection,) = driver.report(driver.claim(), OutcomeUnknown("timed out"))
        assert driver.report(inspection, Absent()) == []
        assert step(workflow).status == StepStatus.STARTED
        time_machine.pass_seconds(QUIET - 1)
        assert driver.turn() == []
        time_machine.pass_seconds(2)
        driver.report(driver.claim(Activity.INSPECT), Absent())
        assert step(workflow).status == StepStatus.FAILED
        time_machine.pass_seconds(2)
        assert driver.claim().attempt_number == 2

    def test_s08_s09_a_person_s_word_that_nothing_happened_waits_until_no_request_can_land(
        self, time_machine: MovableTime
    ) -> None:
        workflow, driver = submit(OPAQUE), JournalDriver()
        driver.report(driver.claim(), OutcomeUnknown("connection lost"))
        answer(case(workflow), DecisionKind.RETRY)
        assert driver.turn() == []
        time_machine.pass_seconds(QUIET)
        assert driver.claim().attempt_number == 2

    def test_a_lookup_that_takes_its_worker_down_each_time_is_given_up(self, time_machine: MovableTime) -> None:
        workflow, driver = submit(QUERYABLE), JournalDriver()
        driver.report(driver.claim(), OutcomeUnknown("timed out"))
        for _ in range(10):
            time_machine.pass_seconds(QUIET)
            JournalDriver().turn()
        assert case(workflow).reason == CaseReason.INSPECTION_INCONCLUSIVE

    def test_what_a_lookup_finds_is_committed(self) -> None:
        workflow, driver = submit(QUERYABLE), JournalDriver()
        (inspection,) = driver.report(driver.claim(), OutcomeUnknown("timed out"))
        driver.report(inspection, Found(Receipt(operation_id="op1")))
        assert (step(workflow).status, step(workflow).operation_id) == (StepStatus.VERIFIED, "op1")
        assert Attempt.objects.get(step=step(workflow)).applied is True

    def test_an_effect_found_with_other_arguments_is_a_question(self) -> None:
        workflow, driver = submit(QUERYABLE), JournalDriver()
        (inspection,) = driver.report(driver.claim(), OutcomeUnknown("timed out"))
        driver.report(inspection, Found(Receipt(operation_id="op1", arguments_match=False)))
        assert case(workflow).reason == CaseReason.CONFLICTING_EFFECT
        answer(case(workflow), DecisionKind.CONFIRM, operation_id="op1")
        driver.turn()
        assert (step(workflow).standing, status(workflow)) == (Standing.ATTESTED, WorkflowStatus.COMPLETED)

    @pytest.mark.parametrize("telling_nothing", [Pending(), Inconclusive("503")], ids=["pending", "inconclusive"])
    def test_lookups_that_tell_nothing_become_a_question_in_the_end(
        self, time_machine: MovableTime, telling_nothing: Pending | Inconclusive
    ) -> None:
        workflow, driver = submit(QUERYABLE), JournalDriver()
        claims = driver.report(driver.claim(), OutcomeUnknown("timed out"))
        for _ in range(4):
            driver.report(claims[0], telling_nothing)
            assert not Case.objects.exists()
            time_machine.pass_seconds(60)
            claims = driver.turn()
        driver.report(claims[0], telling_nothing)
        assert case(workflow).reason == CaseReason.INSPECTION_INCONCLUSIVE

    def test_a_read_is_simply_done_again(self, time_machine: MovableTime) -> None:
        workflow, driver = submit(READ_ONLY), JournalDriver()
        driver.report(driver.claim(), OutcomeUnknown("timed out"))
        time_machine.pass_seconds(2)
        driver.report(driver.claim(), Receipt())
        assert status(workflow) == WorkflowStatus.COMPLETED


class TestVerification:
    def test_a_hidden_outcome_is_read_again_and_becomes_a_question_after_its_deadline(
        self, time_machine: MovableTime
    ) -> None:
        workflow, driver = submit(VERIFIABLE), JournalDriver()
        (verification,) = driver.report(driver.claim(), Receipt())
        assert driver.report(verification, NotVisible("404")) == []
        time_machine.pass_seconds(61)
        driver.report(driver.claim(Activity.VERIFY), NotVisible("404"))
        assert case(workflow).reason == CaseReason.EFFECT_NOT_VISIBLE
        assert status(workflow) == WorkflowStatus.NEEDS_REVIEW
        answer(case(workflow), DecisionKind.CONFIRM)
        assert (step(workflow).standing, status(workflow)) == (Standing.ATTESTED, WorkflowStatus.COMPLETED)


class TestOldFences:
    def take_over(self, workflow: Workflow, time_machine: MovableTime, seconds: float = LEASE_SECONDS) -> Claim:
        """A claim whose lease runs out; another worker's turn sees it."""
        claim = JournalDriver().claim()
        time_machine.pass_seconds(seconds + 1)
        return claim

    def test_a_lease_past_its_time_that_nobody_took_over_still_writes(self, time_machine: MovableTime) -> None:
        workflow, driver = submit(QUERYABLE), JournalDriver()
        claim = driver.claim()
        time_machine.pass_seconds(LEASE_SECONDS + 10)
        driver.report(claim, Receipt())
        assert status(workflow) == WorkflowStatus.COMPLETED

    def test_s43_s44_renewal_needs_the_present_fence(self, time_machine: MovableTime) -> None:
        workflow = submit(QUERYABLE)
        old = self.take_over(workflow, time_machine)
        holder = step(workflow).lease_holder_id
        assert holder is not None
        JournalDriver().claim(Activity.INSPECT)
        assert leases.renew({old.step_id: old.fence}, holder=holder) == set()

    def test_renewal_keeps_others_out(self, time_machine: MovableTime) -> None:
        submit(QUERYABLE)
        driver = JournalDriver()
        claim = driver.claim()
        for _ in range(3):
            time_machine.pass_seconds(LEASE_SECONDS - 5)
            assert leases.renew({claim.step_id: claim.fence}, holder=driver.worker.id) == {claim.step_id}
        assert JournalDriver().turn() == []

    def test_s07_a_late_receipt_is_no_write_but_settles_what_nobody_tried_since(
        self, time_machine: MovableTime
    ) -> None:
        workflow = submit(OPAQUE)
        old = self.take_over(workflow, time_machine, DEADLINE)
        _without_a_word(JournalDriver(), time_machine)
        assert case(workflow).status == CaseStatus.OPEN
        JournalDriver().report(old, Receipt(operation_id="op1"))
        assert "refuse_late_report" in verbs(workflow)
        assert case(workflow).status == CaseStatus.SETTLED
        JournalDriver().turn()
        assert (step(workflow).operation_id, status(workflow)) == ("op1", WorkflowStatus.COMPLETED)

    def test_a_late_receipt_after_a_newer_attempt_asks_about_a_duplicate_even_when_verified(
        self, time_machine: MovableTime
    ) -> None:
        workflow = submit(OPAQUE)
        old = self.take_over(workflow, time_machine, DEADLINE)
        _without_a_word(JournalDriver(), time_machine)
        answer(case(workflow), DecisionKind.RETRY)
        time_machine.pass_seconds(SETTLE)
        driver = JournalDriver()
        driver.report(driver.claim(), Receipt(operation_id="op2"))
        assert status(workflow) == WorkflowStatus.COMPLETED
        driver.report(old, Receipt(operation_id="op1"))
        duplicate = Case.objects.get(workflow=workflow, status="open")
        assert duplicate.reason == CaseReason.DUPLICATE_EFFECT
        assert (step(workflow).status, step(workflow).operation_id) == (StepStatus.VERIFIED, "op2")
        assert Evidence.objects.filter(kind="late_receipt", operation_id="op1").exists()

    def test_a_late_receipt_of_an_earlier_send_under_the_same_key_settles_the_later_one(
        self, time_machine: MovableTime
    ) -> None:
        workflow = submit(KEYED)
        old = self.take_over(workflow, time_machine, QUIET)
        driver = JournalDriver()
        again = driver.claim()
        driver.report(old, Receipt(operation_id="op1"))
        driver.turn()
        assert (step(workflow).operation_id, status(workflow)) == ("op1", WorkflowStatus.COMPLETED)
        driver.report(again, Receipt(operation_id="op1"))
        assert not Case.objects.exists()

    def test_a_late_receipt_of_a_provider_that_honours_the_key_is_no_duplicate(self, time_machine: MovableTime) -> None:
        workflow = submit(KEYED)
        old = self.take_over(workflow, time_machine, QUIET)
        driver = JournalDriver()
        driver.report(driver.claim(), Receipt(operation_id="op1"))
        driver.report(old, Receipt(operation_id="op1"))
        assert not Case.objects.exists()

    def test_a_late_refusal_settles_the_question_and_the_step_is_tried_again(self, time_machine: MovableTime) -> None:
        workflow = submit(OPAQUE)
        old = self.take_over(workflow, time_machine, DEADLINE)
        driver = JournalDriver()
        _without_a_word(driver, time_machine)
        driver.report(old, Refused("the deadline passed before anything was sent"))
        assert case(workflow).status == CaseStatus.SETTLED
        time_machine.pass_seconds(2)
        assert driver.claim().attempt_number == 2

    def test_s45_a_person_s_command_takes_the_next_fence_and_is_audited(self) -> None:
        workflow, driver = submit(OPAQUE), JournalDriver()
        claim = driver.claim()
        driver.report(claim, OutcomeUnknown("connection lost"))
        answer(case(workflow), DecisionKind.CONFIRM)
        assert step(workflow).fence > claim.fence
        assert {"overrule", "confirm", "decide"} <= set(verbs(workflow))


def _without_a_word(driver: JournalDriver, time_machine: MovableTime) -> None:
    """The host of the old worker has not said in time what its flight recorder holds."""
    assert driver.turn() == []
    time_machine.pass_seconds(WAIT_FOR_WORD.total_seconds())
    assert driver.turn() == []


class TestLeftAlone:
    def test_s46_a_workflow_that_nobody_is_on_is_woken(self, database: Addresses) -> None:
        workflow = submit(KEYED)
        flush.step_over_the_law(database.superuser, "UPDATE checkpoint_workflow SET wake_at = NULL")
        assert not leases.anything_due()
        assert leases.wake_workflows_left_alone() == 1
        JournalDriver().claim()
        assert status(workflow) == WorkflowStatus.EXECUTING

    def test_a_workflow_that_asks_a_person_is_left_alone(self) -> None:
        submit(OPAQUE)
        driver = JournalDriver()
        driver.report(driver.claim(), OutcomeUnknown("connection lost"))
        assert leases.wake_workflows_left_alone() == 0
        assert not leases.anything_due()

    def test_a_turn_that_fails_changes_nothing(self) -> None:
        workflow, driver = submit(KEYED), JournalDriver()
        claim = driver.claim()
        with pytest.raises(ValueNotCanonical):
            driver.report(claim, Receipt(facts={"number": float("nan")}))
        assert step(workflow).status == StepStatus.STARTED
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM checkpoint_evidence")
            assert cursor.fetchone() == (0,)
