"""The examples do what they say, with real workers against the real sandbox."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Team, Workflow
from checkpoint.planning.documents import read_document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import CaseReason, Decision, Standing, StepStatus, WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit
from tests.rig import ACTOR, Rig

pytestmark = pytest.mark.slow

EXAMPLES = BASE_DIR / "examples"


@pytest.fixture(scope="module")
def running(rig: Rig) -> Rig:
    accounts = (BASE_DIR / "deploy" / "mail-accounts.toml").read_text(encoding="utf-8")
    accounts = accounts.replace("port = 7125\n", f"port = {rig.sandbox.mail_port}\n")
    listed = rig.folder / "mail-accounts.toml"
    listed.write_text(accounts.replace("http://127.0.0.1:7180", rig.sandbox.url), encoding="utf-8")
    rig.worker(CHECKPOINT_MAIL_ACCOUNTS=str(listed))
    return rig


def submitted(rig: Rig, name: str) -> Workflow:
    """Submits an example to the sandbox's present address."""
    text = (EXAMPLES / name).read_text(encoding="utf-8").replace("http://127.0.0.1:7180", rig.sandbox.url)
    plan = parse_plan(read_document(text.encode(), "yaml"), newest_tools())
    return submit(plan, team=Team.objects.get(slug="default"), actor=ACTOR)


def effects(rig: Rig, workflow: Workflow) -> dict[str, list[dict[str, Any]]]:
    """What the workflow made at the provider, by step."""
    ledger = rig.sandbox.ledger()["effects"]
    return {
        step.name: [effect["body"] for effect in ledger if effect["key"] == step.idempotency_key]
        for step in workflow.steps.all()
    }


def statuses(workflow: Workflow) -> dict[str, str]:
    return {step.name: step.status for step in workflow.steps.all()}


def test_invoicing_makes_three_invoices_and_a_summary_of_them_although_an_answer_is_lost(running: Rig) -> None:
    workflow = running.rest(submitted(running, "invoicing.yaml"))
    assert workflow.status == WorkflowStatus.COMPLETED
    made = effects(running, workflow)
    names = ("invoice_acme", "invoice_birch", "invoice_cobalt")
    assert [[body["amount"] for body in made[name]] for name in names] == [[482000], [91550], [1250000]]
    summary = json.loads((running.folder / "files/invoicing/2026-11.json").read_text())
    numbers = [running.step(workflow, name).operation_id for name in names]
    assert [invoice["number"] for invoice in summary["invoices"]] == numbers
    assert running.cases(workflow) == []


def test_a_reminder_that_two_workflows_want_is_mailed_once_and_the_slip_is_what_was_printed(running: Rig) -> None:
    workflows = [submitted(running, name) for name in ("reminder.yaml", "reminder-again.yaml")]
    assert [running.rest(each).status for each in workflows] == [WorkflowStatus.COMPLETED] * 2
    first, second = (running.step(each, "remind") for each in workflows)
    assert (first.operation_id, first.standing) == (second.operation_id, second.standing)
    assert sorted(each.attempt_count for each in (first, second)) == [0, 1]
    assert running.sandbox.count("mail", key=first.idempotency_key) == 1
    slip = (running.folder / "files/reminders/invoice-7.txt").read_text()
    assert slip == "Reminder\nInvoice 7 of 2 November 2026\nDue: 4 December 2026\n"


def test_the_refund_stops_with_one_question_and_goes_on_once_it_is_answered(running: Rig) -> None:
    workflow = running.rest(submitted(running, "refund.yaml"))
    assert workflow.status == WorkflowStatus.NEEDS_REVIEW
    assert statuses(workflow) == {
        "open_ticket": StepStatus.VERIFIED,
        "charge_return_fee": StepStatus.UNCERTAIN,
        "pay_refund": StepStatus.PLANNED,
    }
    (case,) = running.cases(workflow)
    assert case.reason == CaseReason.OUTCOME_UNKNOWN
    running.decide(case, Decision.CONFIRM, operation_id="CHG-000001")
    workflow = running.rest(workflow)
    assert workflow.status == WorkflowStatus.COMPLETED
    assert {name: len(bodies) for name, bodies in effects(running, workflow).items()} == {
        "open_ticket": 1,
        "charge_return_fee": 1,
        "pay_refund": 1,
    }
    assert running.step(workflow, "pay_refund").standing == Standing.RECEIPT_ONLY


def test_publishing_puts_the_file_s_own_text_and_hash_on_the_site(running: Rig) -> None:
    workflow = running.rest(submitted(running, "publishing.yaml"))
    assert workflow.status == WorkflowStatus.COMPLETED
    written = (running.folder / "files/site/release-notes-2.4.md").read_bytes()
    (page,) = effects(running, workflow)["publish_page"]
    assert page["text"].encode() == written
    assert page["sha256"] == hashlib.sha256(written).hexdigest()


def test_a_price_is_changed_once_although_the_answer_to_the_change_is_lost(running: Rig) -> None:
    workflow = running.rest(submitted(running, "price-list.yaml"))
    assert (workflow.status, running.cases(workflow)) == (WorkflowStatus.COMPLETED, [])
    made = effects(running, workflow)
    assert [[body["chair"] for body in made[name]] for name in ("open_list", "raise_price")] == [[119], [129]]
    assert [body["price"] for body in made["tell_sales"]] == ["129"]


def test_the_draft_is_deleted_once_the_final_text_is_there(running: Rig) -> None:
    workflow = running.rest(submitted(running, "clean-up.yaml"))
    assert (workflow.status, running.cases(workflow)) == (WorkflowStatus.COMPLETED, [])
    assert [file.name for file in (running.folder / "files" / "minutes").iterdir()] == ["2026-11-28.txt"]
    assert not [file for file in (running.folder / "files").rglob(".checkpoint-*/**/*") if file.is_file()]


def test_a_person_is_asked_and_the_workflow_waits_as_long_as_they_say(running: Rig) -> None:
    workflow = running.rest(submitted(running, "tools/ask-and-wait.yaml"))
    assert workflow.status == WorkflowStatus.NEEDS_REVIEW
    (case,) = running.cases(workflow)
    running.decide(case, Decision.ANSWER, data={"seconds": 1, "said": "until tomorrow"})
    assert running.rest(workflow).status == WorkflowStatus.COMPLETED
    waited = running.step(workflow, "think_it_over")
    assert waited.verified_at is not None
    asked = running.step(workflow, "ask")
    assert asked.verified_at is not None
    assert (waited.verified_at - asked.verified_at).total_seconds() >= 1
    note = json.loads((running.folder / "files/notes/thought-it-over.json").read_text())
    assert note == {"seconds": 1, "said": "until tomorrow"}
