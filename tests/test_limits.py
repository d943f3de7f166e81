"""Limits: no more at once, and no more a minute, than the policy lets; a place that is left is passed on at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction

from checkpoint import clock
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.contracts import Variant
from checkpoint.gates import limiting
from checkpoint.models import Activity, Approval, Attempt, Limit, Step, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt
from checkpoint.rows import limit_rows, statements
from checkpoint.states import StepStatus, WorkflowStatus
from checkpoint.tool_versions import Declaration
from checkpoint.turns.calls import Claim, Report
from tests.approval_driver import answer, approver, in_force, pending
from tests.journal_driver import KEYED, OPAQUE, READ_ONLY, JournalDriver, effect, submit
from tests.sandbox_driver import wait_for
from tests.submissions import INVOICE_SCHEMA, document, plan_of, published, submit_plan
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


def limit(tool: str = "*", **limits: Any) -> None:
    """Puts a policy with these limits in force."""
    in_force({"when": {"tool": tool}, "set": {"limits": limits}})


def batch(size: int, tool: str = "effect") -> list[dict[str, Any]]:
    """Steps that run side by side."""
    return [effect(f"{tool}_{number}", cents=number + 1) | {"tool": tool, "position": 1} for number in range(size)]


def started() -> int:
    return Step.objects.filter(status=StepStatus.STARTED).count()


def names(claims: list[Claim]) -> list[str]:
    return sorted(claim.step_name for claim in claims)


class TestPerTool:
    def test_no_more_steps_of_a_tool_are_started_than_its_limit_by_all_workers_together(self) -> None:
        limit(in_flight=2)
        for _ in range(5):
            submit(KEYED)
        assert len(JournalDriver().turn()) == 2
        assert JournalDriver().turn() == []
        assert started() == 2

    def test_who_reports_passes_the_place_on_in_the_same_turn(self) -> None:
        limit(in_flight=1)
        first, second, third = (submit(KEYED) for _ in range(3))
        driver = JournalDriver()
        claim = driver.claim()
        assert {first.pk, second.pk, third.pk} >= {claim.workflow_id}
        done = {claim.workflow_id}
        for _ in range(2):
            (claim,) = driver.report(claim, Receipt())
            done.add(claim.workflow_id)
        assert done == {first.pk, second.pk, third.pk}
        assert driver.report(claim, Receipt()) == []
        assert not Workflow.objects.exclude(status=WorkflowStatus.COMPLETED).exists()
        assert not Workflow.objects.exclude(held_by=None).exists()

    def test_what_waits_for_a_place_keeps_nothing_else_from_its_turn(self) -> None:
        """Held workflows are not due; in a batch, what has no place does not stand in the way of what needs none."""
        limit("effect", in_flight=1)
        tools = published(*(declared(name) for name in ("effect", "other")))
        for _ in range(10):
            submit_plan(plan_of(document(*batch(1)), tools))
        mixed = submit_plan(plan_of(document(*batch(10), *batch(3, "other")), tools))
        driver = JournalDriver("effect@1", "other@1")
        claimed = [claim for _ in range(3) for claim in driver.turn(hands=5)]
        assert sorted(claim.tool for claim in claimed) == ["effect", "other", "other", "other"]
        assert not Workflow.objects.filter(wake_at__lte=clock.now()).exclude(pk=mixed.pk).exists()

    def test_a_place_is_left_however_a_call_ends(self) -> None:
        limit(in_flight=1)
        submit(OPAQUE)
        submit(OPAQUE)
        driver = JournalDriver()
        (second,) = driver.report(driver.claim(), OutcomeUnknown("lost"))
        assert second.activity is Activity.EXECUTE

    def test_a_place_that_nobody_passes_on_is_found_by_looking_again(self, time_machine: MovableTime) -> None:
        limit(in_flight=1)
        submit(READ_ONLY)
        submit(READ_ONLY)
        driver = JournalDriver()
        claim = driver.claim()
        assert driver.turn() == []
        Step.objects.filter(pk=claim.step_id).update(status=StepStatus.FAILED)  # as by a verb that is no turn
        assert driver.turn() == []
        time_machine.pass_seconds(limiting.LOOK_AGAIN.total_seconds() + 0.1)
        assert len(driver.turn()) == 1

    def test_those_that_wait_look_again_one_after_the_other(self) -> None:
        limit(in_flight=1)
        for _ in range(4):
            submit(KEYED)
        JournalDriver().turn()
        times = [workflow.wake_at for workflow in Workflow.objects.exclude(held_by=None).order_by("wake_at")]
        first, second, third = (time for time in times if time is not None)
        assert second - first == third - second == limiting.APART

    def test_a_step_that_is_sent_again_has_its_place_already(self, time_machine: MovableTime) -> None:
        limit(in_flight=1)
        submit(KEYED)
        JournalDriver().claim()
        time_machine.pass_seconds(60)
        assert JournalDriver().claim().attempt_number == 2

    def test_two_workers_in_the_same_moment_keep_to_the_limit_together(self, database: Addresses) -> None:
        limit(in_flight=3)
        for _ in range(8):
            submit(KEYED)
        assert len(JournalDriver().turn(hands=1)) == 1  # now the limit has its row
        with held_row(database) as waiting:
            turns = [in_thread(JournalDriver(), hands=4) for _ in range(2)]
            wait_for(lambda: waiting() == 2, 10)
        assert sum(len(claims()) for claims in turns) + 1 == 3
        assert started() == 3

    def test_approvals_are_asked_for_while_no_place_is_left_and_used_only_with_one(self) -> None:
        in_force({"set": {"limits": {"in_flight": 1}, "approval": {"needed": 1}}})
        person, driver = approver(), JournalDriver()
        first = submit(KEYED)
        driver.turn()
        answer(pending(first), person)
        claim = driver.claim()
        second = submit(KEYED)
        assert driver.turn() == []
        answer(pending(second), person)
        assert driver.turn() == []
        assert Approval.objects.get(workflow=second).status == "approved"
        assert [claim.workflow_id for claim in driver.report(claim, Receipt())] == [second.pk]
        assert Approval.objects.get(workflow=second).status == "consumed"

    def test_a_rule_may_give_some_steps_more_room(self) -> None:
        in_force(
            {"set": {"limits": {"in_flight": 1}}},
            {"when": {"if": "arguments.cents == 3"}, "set": {"limits": {"in_flight": 2}}},
        )
        submit(KEYED, *batch(3))
        assert names(JournalDriver().turn()) == ["effect_0", "effect_2"]


class TestRates:
    def test_no_more_starts_than_the_rate_lets_by_all_workers_together(self, time_machine: MovableTime) -> None:
        limit(starts_per_minute=60, burst=3)
        for _ in range(8):
            submit(KEYED)
        assert len(JournalDriver().turn()) == 3
        assert JournalDriver().turn() == []
        time_machine.pass_seconds(120)  # however long the pause: not more than the burst
        assert sum(len(JournalDriver().turn(hands=5)) for _ in range(3)) == 3

    def test_those_that_wait_get_times_as_far_apart_as_the_rate_wants(self) -> None:
        limit(starts_per_minute=1)
        for _ in range(4):
            submit(KEYED)
        JournalDriver().turn()
        first = Attempt.objects.get().started_at
        held = Workflow.objects.exclude(held_by=None).order_by("wake_at")
        waits = [(one.wake_at - first).total_seconds() for one in held if one.wake_at is not None]
        assert waits == pytest.approx([60, 60, 60], abs=1)  # the line is never longer than a minute

    def test_a_batch_starts_step_after_step(self, time_machine: MovableTime) -> None:
        limit(starts_per_minute=60, burst=1)
        workflow, driver = submit(KEYED, *batch(3)), JournalDriver()
        for _ in range(3):
            assert driver.report(driver.claim(), Receipt()) == []
            time_machine.pass_seconds(1)
        workflow.refresh_from_db()
        assert workflow.status == WorkflowStatus.COMPLETED

    def test_what_is_sent_again_counts_once_more(self, time_machine: MovableTime) -> None:
        limit(starts_per_minute=0.1, burst=1)
        submit(KEYED)
        JournalDriver().claim()
        time_machine.pass_seconds(100)
        assert JournalDriver().turn() == []
        time_machine.pass_seconds(501)
        assert JournalDriver().claim().attempt_number == 2

    def test_a_tool_s_own_limits_hold_until_a_policy_sets_others(self) -> None:
        modest = replace(KEYED, in_flight=2, starts_per_minute=60.0, burst=3)
        for _ in range(6):
            submit(modest)
        assert len(JournalDriver().turn()) == 2
        limit(in_flight=4)
        assert len(after_looking_again()) == 1  # the rate is still the tool's: the burst is used up
        limit(in_flight=5, starts_per_minute=600, burst=50)
        assert len(after_looking_again()) == 2


def after_looking_again() -> list[Claim]:
    """What is claimed once those that wait look again."""
    Workflow.objects.exclude(held_by=None).update(wake_at=clock.now())
    return JournalDriver().turn()


class TestPerWorkflow:
    def test_each_workflow_has_places_of_its_own(self) -> None:
        limit(in_flight_per_workflow=2)
        first, second = submit(KEYED, *batch(4)), submit(KEYED, *batch(4))
        driver = JournalDriver()
        claims = driver.turn()
        assert sorted(claim.workflow_id for claim in claims) == sorted([first.pk, first.pk, second.pk, second.pk])
        assert len(driver.turn(*(Report(claim, Receipt()) for claim in claims[:1]))) == 1

    def test_a_batch_ends_within_its_limit(self) -> None:
        limit(in_flight_per_workflow=3)
        workflow, driver = submit(KEYED, *batch(20)), JournalDriver()
        claims = driver.turn()
        while claims:
            assert started() <= 3
            claims = [*claims[1:], *driver.report(claims[0], Receipt())]
        workflow.refresh_from_db()
        assert workflow.status == WorkflowStatus.COMPLETED


class TestWithoutLimits:
    def test_a_turn_sends_no_statement_about_limits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_force({"set": {"step_up": True}})
        submit(KEYED)
        driver, sent, run = JournalDriver(), list[str](), statements._run

        def note(text: str, values: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
            sent.append(text)
            return run(text, values)

        monkeypatch.setattr(statements, "_run", note)
        driver.report(driver.claim(), Receipt())
        assert sent
        assert not [text for text in sent if "checkpoint_limit" in text or "held_by = ANY" in text]
        assert not Limit.objects.exists()

    def test_counting_reads_the_index_of_started_steps(self) -> None:
        explain = "EXPLAIN " + limit_rows._IN_FLIGHT.replace("%(tools)s", "'{effect}'")
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(explain)
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "step_started" in plan, plan


def declared(name: str) -> Declaration:
    return Declaration(name, "1", "An effect.", INVOICE_SCHEMA, (Variant("only", KEYED),))


@contextmanager
def held_row(database: Addresses) -> Iterator[Callable[[], int]]:
    """Somebody else holds the tool's limit; gives how many wait for it."""
    with psycopg.connect(database.superuser) as holder, psycopg.connect(database.superuser, autocommit=True) as watcher:
        holder.execute("SELECT FROM checkpoint_limit FOR UPDATE")
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%checkpoint_limit%'"
        )
        yield lambda: int(watcher.execute(waiting).fetchall()[0][0])
        holder.rollback()


def in_thread(driver: JournalDriver, *, hands: int) -> Callable[[], list[Claim]]:
    """Begins a turn in a thread; gives a function that waits for its claims."""
    claims: list[Claim] = []

    def turn() -> None:
        claims.extend(driver.turn(hands=hands))
        connections.close_all()

    thread = threading.Thread(target=turn)
    thread.start()

    def ended() -> list[Claim]:
        thread.join(20)
        return claims

    return ended
