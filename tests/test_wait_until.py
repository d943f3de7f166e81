"""`wait.until`: the time is fixed once, and until it comes nobody holds anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkpoint.errors import ArgumentsInvalid
from checkpoint.explaining.explanations import explain
from checkpoint.models import AuditEntry, Evidence, Workflow
from checkpoint.outcomes import Receipt
from checkpoint.people import Actor
from checkpoint.planning.argument_schemas import closed, prepare_arguments
from checkpoint.rows.workflow_records import load
from checkpoint.states import StepStatus, WorkflowStatus
from checkpoint.workflows import abandon
from tests.journal_driver import JournalDriver, step
from tests.submissions import document, plan_of, published, submit_plan
from tests.time_driver import MovableTime
from workers.publishing import declaration
from workers.tools.wait_until import WaitArguments, WaitUntil

SCHEMA = closed(WaitArguments.model_json_schema())


def submitted(**arguments: Any) -> Workflow:
    steps = [{"name": name, "tool": "wait.until", "arguments": arguments} for name in ("effect", "second")]
    return submit_plan(plan_of(document(*steps), published(declaration(WaitUntil()))))


@pytest.fixture
def driver(time_machine: MovableTime) -> JournalDriver:
    return JournalDriver("wait.until@1")


def test_a_duration_counts_once_from_when_the_step_s_turn_comes(
    driver: JournalDriver, time_machine: MovableTime
) -> None:
    workflow = submitted(seconds=3600)
    time_machine.pass_seconds(1000)
    assert driver.turn() == []
    waits = step(workflow)
    assert (waits.status, waits.lease_holder_id, waits.attempt_count) == (StepStatus.PREPARED, None, 0)
    workflow.refresh_from_db()
    assert workflow.wake_at == waits.next_at
    Workflow.objects.update(wake_at=None)
    time_machine.pass_seconds(1800)
    Workflow.objects.update(wake_at="2020-01-01T00:00:00Z")
    assert driver.turn() == []
    assert step(workflow).next_at == waits.next_at
    time_machine.pass_seconds(1801)
    claim = driver.claim()
    driver.report(claim, Receipt(facts={"waited": True}))
    assert step(workflow).status == StepStatus.VERIFIED


def test_looking_again_early_changes_nothing(driver: JournalDriver, time_machine: MovableTime) -> None:
    """Something else may take the `next_at` away; the time on record stands."""
    workflow = submitted(seconds=3600)
    driver.turn()
    until = step(workflow).next_at
    workflow.steps.update(next_at=None)
    Workflow.objects.update(wake_at="2020-01-01T00:00:00Z")
    time_machine.pass_seconds(600)
    assert driver.turn() == []
    assert step(workflow).next_at == until
    assert Evidence.objects.filter(step__workflow=workflow, finding="waits").count() == 1
    assert AuditEntry.objects.filter(stream_id=workflow.pk, verb="wait").count() == 1


def test_a_time_that_has_passed_is_no_wait(driver: JournalDriver) -> None:
    submitted(until="2020-01-01T00:00:00+01:00")
    assert driver.claim().step_name == "effect"


def test_it_is_explained_with_its_time(driver: JournalDriver) -> None:
    workflow = submitted(until="2099-12-31T23:59:59+02:00")
    driver.turn()
    outlook = explain(load(workflow)).steps[0].outlook
    assert outlook.words == "the time that it waits for comes"
    assert outlook.at is not None
    assert outlook.at.isoformat() == "2099-12-31T21:59:59+00:00"


def test_a_workflow_that_is_abandoned_meanwhile_ends_at_once(driver: JournalDriver) -> None:
    workflow = submitted(seconds=3600)
    driver.turn()
    abandon(workflow_id=workflow.pk, actor=Actor(name="tests", channel="command"), reason="no longer wanted")
    workflow.refresh_from_db()
    assert workflow.status == WorkflowStatus.ABANDONED


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"seconds": 1, "until": "2026-12-01T09:00:00Z"},
        {"seconds": 0},
        {"seconds": 366 * 24 * 3600 + 1},
        {"until": None},
        {"until": "2026-12-01T09:00:00"},
        {"until": "2026-02-31T09:00:00Z"},
        {"until": "9999-12-01T09:00:00Z"},
        {"until": "tomorrow"},
    ],
)
def test_the_schema_takes_one_time_or_one_duration(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsInvalid):
        prepare_arguments(SCHEMA, given)


@pytest.mark.parametrize("given", [{"seconds": 0.5}, {"until": "2026-12-01T09:00:00.250+05:30"}])
def test_what_the_schema_takes_the_tool_reads(given: dict[str, Any]) -> None:
    text = prepare_arguments(SCHEMA, given)
    assert json.loads(WaitArguments.model_validate_json(text, strict=True).model_dump_json(exclude_none=True)) == given
