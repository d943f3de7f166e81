"""Storing a plan: everything or nothing, written ahead, once."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connection
from django.db.models import F

from checkpoint import audit, doorbell
from checkpoint.budgets import Policy
from checkpoint.canonical import canonical, idempotency_key, sha256_hex
from checkpoint.errors import SubmissionInvalid
from checkpoint.models import AuditEntry, Intent, PolicyVersion, Step, Team, ToolVersion, Workflow
from checkpoint.states import StepStatus, WorkflowStatus
from checkpoint.tool_versions import Declaration, newest_tools, publish_tools
from checkpoint.workflows import submit, submit_many
from tests import submissions as driver

pytestmark = pytest.mark.usefixtures("database")


def test_a_step_with_complete_arguments_is_written_ahead_with_defaults_key_and_intent() -> None:
    workflow = driver.submitted(driver.invoice())
    step = Step.objects.get()
    arguments = '{"cents":12000,"customer":"acme","urgent":false}'
    assert (step.status, step.arguments, step.variant) == (StepStatus.PREPARED, arguments, "keyed")
    assert step.arguments_hash == sha256_hex(arguments)
    assert step.idempotency_key == idempotency_key(
        workflow_id=str(workflow.pk), step_name="invoice", tool="invoice.create", arguments=arguments
    )
    intent = Intent.objects.get()
    assert (intent.key, intent.owner_id, intent.team_id) == (step.idempotency_key, step.pk, workflow.team_id)


def test_a_step_that_refers_to_a_result_is_planned_without_key_or_intent() -> None:
    driver.submitted(driver.invoice(), driver.mail(to={"$result": "invoice#/facts/address"}))
    mail = Step.objects.get(name="mail")
    assert (mail.status, mail.arguments, mail.idempotency_key, mail.variant) == (StepStatus.PLANNED, None, "", "")
    assert json.loads(mail.template) == {"to": {"$result": "invoice#/facts/address"}}
    assert not Intent.objects.filter(owner=mail).exists()


def test_the_workflow_is_due_at_once_pins_the_newest_policy_and_begins_its_audit_trail() -> None:
    workflow = driver.submitted(driver.invoice(), driver.invoice("second"), input={"b": 1, "a": 2})
    workflow.refresh_from_db()
    assert workflow.status == WorkflowStatus.PLANNED
    assert workflow.wake_at is not None
    assert (workflow.input, workflow.input_hash) == ('{"a":2,"b":1}', sha256_hex('{"a":2,"b":1}'))
    assert workflow.policy_version == PolicyVersion.objects.latest("number")
    assert set(Step.objects.values_list("attempts_allowed", flat=True)) == {Policy().max_attempts}
    [entry] = AuditEntry.objects.filter(stream_id=workflow.pk)
    assert (entry.verb, entry.actor, entry.channel) == ("submit", "tests", "command")
    assert list(audit.broken_links()) == []


def test_spellings_of_one_call_have_the_same_arguments() -> None:
    spellings = ({"customer": "acme", "cents": 1}, {"cents": 1.0, "urgent": False, "customer": "acme"})
    driver.submitted(*(driver.invoice(f"step_{n}", arguments=spelling) for n, spelling in enumerate(spellings)))
    assert Step.objects.values("arguments_hash").distinct().count() == 1


def test_a_refused_document_stores_nothing() -> None:
    tools = driver.published()
    with pytest.raises(SubmissionInvalid):
        submit(
            driver.plan_of(driver.document(driver.invoice(), driver.invoice()), tools),
            team=Team.objects.get(slug="default"),
            actor=driver.ACTOR,
        )
    assert not Workflow.objects.exists()


def test_what_the_database_refuses_leaves_nothing_behind() -> None:
    tools = driver.published()
    plan = driver.plan_of(driver.document(), tools)
    team = Team(slug="ghost", name="A team that was never stored")
    with pytest.raises(DatabaseError):
        submit(plan, team=team, actor=driver.ACTOR)
    connection.close()
    assert not Workflow.objects.exists()
    assert not Step.objects.exists()
    assert not audit_streams_of_workflows()


def audit_streams_of_workflows() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM checkpoint_auditstream WHERE name LIKE 'workflow/%'")
        return int(cursor.fetchone()[0])


def test_the_doorbell_rings_after_the_commit_when_the_workflow_can_be_seen() -> None:
    seen: list[bool] = []

    def look(**_: object) -> None:
        seen.append(Workflow.objects.exists() and not connection.in_atomic_block)

    doorbell.rung.connect(look)
    try:
        driver.submitted()
    finally:
        doorbell.rung.disconnect(look)
    assert seen == [True]


def test_two_submissions_at_once_are_two_workflows_with_keys_of_their_own() -> None:
    plan = driver.plan_of(driver.document(), driver.published())
    team = Team.objects.get(slug="default")
    together = threading.Barrier(2)

    def one() -> Workflow:
        together.wait(timeout=30)
        try:
            return submit(plan, team=team, actor=driver.ACTOR)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        first, second = (future.result() for future in [pool.submit(one), pool.submit(one)])
    assert first.pk != second.pk
    assert Intent.objects.values("key").distinct().count() == Workflow.objects.count() == 2


def test_many_workflows_are_stored_together() -> None:
    plan = driver.plan_of(driver.document(*(driver.invoice(f"step_{n}") for n in range(300))), driver.published())
    workflows = submit_many([plan] * 5, team=Team.objects.get(slug="default"), actor=driver.ACTOR)
    assert len({workflow.pk for workflow in workflows}) == 5
    assert Step.objects.filter(intent__key=F("idempotency_key")).count() == 1500


def test_two_workers_that_publish_the_same_tools_at_once_store_them_once() -> None:
    together = threading.Barrier(2)

    def one() -> int:
        together.wait(timeout=30)
        try:
            return len(publish_tools([driver.INVOICE, driver.MAIL], actor=driver.ACTOR))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        made = [future.result() for future in [pool.submit(one), pool.submit(one)]]
    assert sum(made) == ToolVersion.objects.count() == 2
    assert AuditEntry.objects.filter(stream_id=audit.SYSTEM_STREAM, verb="publish").count() == 2


def test_a_changed_contract_is_a_new_version_and_the_newest_counts() -> None:
    driver.published()
    changed = Declaration("mail.send", "2", "Sends mail.", driver.MAIL_SCHEMA, driver.MAIL.variants[1:])
    [stored] = publish_tools([changed], actor=driver.ACTOR)
    assert newest_tools()["mail.send"].version_id == stored.pk
    assert ToolVersion.objects.filter(name="mail.send").count() == 2


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "nonsense"}, "not a JSON Schema"),
        ({"$ref": "https://example.com/schema"}, "only entries of its own"),
        ({"properties": {"a": {"$ref": "#/$defs/Missing"}}}, "only entries of its own"),
    ],
)
def test_a_tool_whose_schema_cannot_be_used_is_not_published(schema: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        publish_tools([Declaration("x.y", "1", "", schema, driver.INVOICE.variants)], actor=driver.ACTOR)
    assert not ToolVersion.objects.exists()


def test_the_first_policy_is_what_the_code_calls_default() -> None:
    policy = PolicyVersion.objects.get(number=1)
    assert Policy(**policy.rules) == Policy()
    assert policy.sha256 == sha256_hex(canonical(policy.rules))
