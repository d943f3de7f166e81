"""Undoing an effect: a second effect, in a workflow of its own, asked about and carried out like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError

from checkpoint import audit, compensations, workflows
from checkpoint.contracts import Compensation, Contract, RecoveryClass, Reversibility, Variant
from checkpoint.errors import ActionIncomplete, CompensationRefused, Forbidden, NotFound, StaleView, SubmissionInvalid
from checkpoint.explaining.explanations import explain
from checkpoint.models import AuditEntry, Case, Step, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt, Refused
from checkpoint.people import Actor
from checkpoint.rows.workflow_records import load
from checkpoint.states import CaseReason, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.tool_versions import Declaration
from tests import factories, flush
from tests.approval_driver import in_force, pending
from tests.case_driver import at_once, raised
from tests.console_driver import Forms, signed_in
from tests.journal_driver import KEYED, OPAQUE, JournalDriver, answer, case, contract, effect, step
from tests.submissions import ACTOR, INVOICE_SCHEMA, document, plan_of, published, submit_plan
from tests.test_commands import run
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

S, W = StepStatus, WorkflowStatus
HOW = Compensation(
    "undo", {"number": {"$result": "effect#/operation_id"}, "customer": {"$input": "/customer"}, "note": "cancelled"}
)
UNDO_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("number", "customer", "note")},
    "required": ["number"],
    "additionalProperties": False,
}
UNDONE = Contract(RecoveryClass.OPAQUE, Reversibility.COMPENSABLE, compensation=HOW)


def submit(
    promises: Contract = UNDONE, *steps: dict[str, Any], undo: Contract = KEYED, user: User | None = None
) -> Any:
    tools = published(
        Declaration("effect", "1", "An effect.", INVOICE_SCHEMA, (Variant("only", promises),)),
        Declaration("undo", "1", "Undoes it.", UNDO_SCHEMA, (Variant("only", undo),)),
    )
    return submit_plan(plan_of(document(*(steps or (effect(),))), tools), user)


def worker() -> JournalDriver:
    return JournalDriver("effect@1", "undo@1")


def done(promises: Contract = UNDONE, **more: Any) -> tuple[Workflow, JournalDriver]:
    """A completed workflow of one effect."""
    workflow, driver = submit(promises, **more), worker()
    driver.report(driver.claim(), Receipt("inv_7"))
    assert status(workflow) == W.COMPLETED
    return workflow, driver


def undo(workflow: Workflow, person: User | None = None, *, name: str = "effect", **changes: Any) -> Workflow:
    seen = step(workflow, name)
    actor = Actor(person.username, "command") if person else ACTOR
    wanted = {"step_version": seen.version, "reason": "ordered twice", "actor": actor, "user": person, **changes}
    return compensations.request(step_id=seen.pk, **wanted)


def status(workflow: Workflow) -> str:
    return str(Workflow.objects.get(pk=workflow.pk).status)


def test_a_new_step_undoes_it_and_the_old_one_stays_as_it_was() -> None:
    workflow, driver = done()
    before = Step.objects.filter(workflow=workflow).values().get()
    made = undo(workflow)
    undoing = made.steps.get()
    assert (undoing.compensates, undoing.name, made.kind) == (step(workflow), "undo_effect", "compensation")
    assert json.loads(undoing.arguments or "") == {"customer": "acme", "note": "cancelled", "number": "inv_7"}
    assert undoing.idempotency_key != step(workflow).idempotency_key
    driver.report(driver.claim(), Receipt("ref_1"))
    assert [status(workflow), status(made)] == [W.COMPLETED, W.COMPLETED]
    assert Step.objects.filter(workflow=workflow).values().get() == before
    (asked,) = AuditEntry.objects.filter(stream_id=workflow.pk, verb="request_compensation")
    assert "ordered twice" in asked.text
    assert str(made.pk) in asked.text
    (begun,) = AuditEntry.objects.filter(stream_id=made.pk, verb="submit")
    assert str(step(workflow).pk) in begun.text
    assert list(audit.broken_links()) == []


def test_an_abandoned_workflow_stays_abandoned_while_what_it_did_is_undone() -> None:
    workflow, driver = submit(UNDONE, effect("effect"), effect("next", cents=2)), worker()
    (following,) = driver.report(driver.claim(), Receipt("inv_7"))
    with pytest.raises(CompensationRefused, match=r"still goes on and may build on this. Wind it down first"):
        undo(workflow)
    workflows.abandon(workflow_id=workflow.pk, actor=ACTOR, reason="no")
    driver.report(following, Refused("no"))
    assert status(workflow) == W.ABANDONED
    made = undo(workflow)
    assert (status(workflow), status(made)) == (W.ABANDONED, W.PLANNED)


def test_while_it_winds_down_what_is_verified_can_be_undone() -> None:
    workflow, driver = submit(UNDONE, effect("effect"), effect("next", cents=2)), worker()
    (following,) = driver.report(driver.claim(), Receipt("inv_7"))
    driver.report(following, OutcomeUnknown("cut"))
    driver.turn()
    workflows.abandon(workflow_id=workflow.pk, actor=ACTOR, reason="no")
    with pytest.raises(CompensationRefused, match="“next” is uncertain: what became of its call is not settled yet"):
        undo(workflow, name="next")
    assert status(undo(workflow)) == W.PLANNED


class TestRefusals:
    @pytest.mark.parametrize(
        ("promises", "why"),
        [
            (OPAQUE, "this effect cannot be undone"),
            (contract(RecoveryClass.READ_ONLY, reversibility=Reversibility.NONE_NEEDED), "nothing that would have"),
            (KEYED, "does not say by which call"),
            (replace(UNDONE, compensation=replace(HOW, tool="gone")), "No worker has published gone"),
            (replace(UNDONE, compensation=replace(HOW, arguments={})), "/number: is missing"),
            (replace(UNDONE, compensation=replace(HOW, arguments={"number": {"$input": "/no"}})), "/no"),
        ],
    )
    def test_what_cannot_be_undone_says_why(self, promises: Contract, why: str) -> None:
        workflow, _ = done(promises)
        with pytest.raises(CompensationRefused, match=why):
            undo(workflow)
        assert Workflow.objects.count() == 1

    def test_nothing_that_did_not_take_effect(self) -> None:
        workflow = submit()
        workflows.abandon(workflow_id=workflow.pk, actor=ACTOR, reason="no")
        with pytest.raises(CompensationRefused, match="is abandoned: nothing took effect"):
            undo(workflow)

    def test_not_on_what_was_not_seen_and_not_without_a_reason(self) -> None:
        workflow, _ = done()
        with pytest.raises(StaleView):
            undo(workflow, step_version=1)
        with pytest.raises(ActionIncomplete):
            undo(workflow, reason=" ")
        with pytest.raises(NotFound):
            compensations.request(step_id=uuid4(), step_version=1, actor=ACTOR, reason="x")

    def test_not_what_does_not_match_its_hash(self, database: Any) -> None:
        workflow, _ = done()
        flush.step_over_the_law(database.superuser, "UPDATE checkpoint_evidence SET facts = '{\"number\":8}'")
        with pytest.raises(CompensationRefused, match="does not match its hash"):
            undo(workflow)

    def test_only_by_who_submitted_it_or_administers(self) -> None:
        workflow, _ = done()
        bystander = factories.person("eve", groups=["Approver"], teams=[workflow.team])
        with pytest.raises(Forbidden, match="can have undone what it did"):
            undo(workflow, bystander)
        with pytest.raises(NotFound):
            undo(workflow, factories.person("out", groups=["Approver"]))
        assert undo(workflow, factories.person("adam", groups=["Admin"])).submitted_by is not None

    def test_a_taken_receipt_is_undone_where_its_effect_was_made(self) -> None:
        first, second = (submit(UNDONE, effect() | {"intent": "x"}) for _ in range(2))
        driver = worker()
        driver.report(driver.claim(), Receipt("inv_7"))
        driver.turn()
        with pytest.raises(CompensationRefused, match=f"that of step effect of workflow {first.pk}.*undo it there"):
            undo(second)
        undo(first)
        with pytest.raises(SubmissionInvalid, match=r"is closed: what step effect of workflow .* is undone"):
            submit(UNDONE, effect() | {"intent": "x"})


class TestTwice:
    def test_the_same_person_pressing_again_gets_the_same_workflow_and_another_is_told(self) -> None:
        workflow, _ = done()
        made = undo(workflow)
        assert undo(workflow) == made
        with pytest.raises(CompensationRefused, match=f"said: ordered twice That stands, as workflow {made.pk}"):
            undo(workflow, reason="on second thoughts")
        with pytest.raises(CompensationRefused, match=f"by workflow {made.pk}, which tests asked for"):
            undo(workflow, factories.person("adam", groups=["Admin"]))

    def test_of_two_who_press_at_once_one_counts(self) -> None:
        workflow, _ = done()
        people = [factories.person(name, groups=["Admin"]) for name in ("ann", "bob", "cid")]

        outcomes = at_once(*(partial(undo, workflow, person) for person in people))
        refused = raised(outcomes)
        assert len(refused) == 2
        assert all(isinstance(each, CompensationRefused) for each in refused), outcomes
        assert Step.objects.filter(compensates__isnull=False).count() == 1

    def test_what_was_never_sent_can_be_asked_for_again_and_what_may_have_happened_cannot(self) -> None:
        workflow, driver = done(undo=OPAQUE)
        first = undo(workflow)
        workflows.abandon(workflow_id=first.pk, actor=ACTOR, reason="not yet")
        second = undo(workflow)
        assert second != first
        driver.report(driver.claim(), OutcomeUnknown("cut"))
        driver.turn()
        answer(case(second), DecisionKind.ABANDON)
        assert status(second) == W.ABANDONED
        assert undo(workflow) == second

    def test_the_record_holds_it_too(self) -> None:
        workflow, _ = done()
        made = undo(workflow)
        other = submit(UNDONE, effect(cents=5))
        with pytest.raises(IntegrityError, match="step_compensated_once"):
            Step.objects.create(
                workflow=other, position=2, name="x", tool_version=step(other).tool_version, compensates=step(workflow)
            )
        with pytest.raises(IntegrityError, match="law undoes_an_effect"):
            Step.objects.create(
                workflow=other, position=2, name="x", tool_version=step(other).tool_version, compensates=step(other)
            )
        with pytest.raises(IntegrityError, match="law compensates_is_fixed"):
            made.steps.update(compensates=None)


def test_a_policy_can_ask_about_compensations_alone() -> None:
    in_force({"when": {"kind": "compensation"}, "set": {"approval": {"needed": 1}}})
    workflow, driver = done()
    made = undo(workflow)
    assert driver.turn() == []
    assert pending(made).step == made.steps.get()


def test_one_that_fails_has_a_case_of_its_own_and_can_be_tried_again(time_machine: MovableTime) -> None:
    workflow, driver = done()
    made = undo(workflow)
    driver.report(driver.claim(), Refused("closed books", permanent=True))
    time_machine.pass_seconds(5)
    assert driver.turn() == []
    asked = Case.objects.get(workflow=made)
    assert asked.reason == CaseReason.COMPENSATION_FAILED
    assert "was to undo an earlier effect" in asked.sentence
    assert status(workflow) == W.COMPLETED
    answer(asked, DecisionKind.RETRY)
    driver.report(driver.claim(), Receipt("ref_1"))
    assert status(made) == W.COMPLETED


def test_on_the_page_one_form_leads_to_the_new_workflow_without_javascript() -> None:
    person = factories.person("adam", groups=["Admin"])
    workflow, _ = done()
    client, address = signed_in(person), f"/steps/{step(workflow).pk}/compensation/"
    assert address in client.get(f"/workflows/{workflow.pk}/").text
    (form,) = [form for form in Forms(client.get(address).text).forms if form["action"] == address]
    refused = client.post(address, form["fields"] | {"reason": ""})
    assert (refused.status_code, "Not recorded" in refused.text) == (422, True)
    answered = client.post(address, form["fields"] | {"reason": "ordered twice"})
    made = Workflow.objects.get(kind="compensation")
    assert (answered.status_code, answered["Location"]) == (302, f"/workflows/{made.pk}/")
    assert "Undone by" in client.get(f"/workflows/{workflow.pk}/").text
    assert "Undoes" in client.get(f"/workflows/{made.pk}/").text
    assert "Asked for already" in client.get(address).text
    other = signed_in(factories.person("bea", groups=["Admin"]))
    late = other.post(address, form["fields"] | {"csrfmiddlewaretoken": _token(other, workflow), "reason": "me too"})
    assert (late.status_code, "which adam asked for" in late.text, "me too" in late.text) == (409, True, True)
    assert Workflow.objects.filter(kind="compensation").count() == 1


def _token(client: Any, workflow: Workflow) -> str:
    forms = Forms(client.get(f"/workflows/{workflow.pk}/").text).forms
    return str(next(form["fields"]["csrfmiddlewaretoken"] for form in forms if "csrfmiddlewaretoken" in form["fields"]))


def test_who_may_not_is_offered_nothing_and_refused() -> None:
    workflow, _ = done()
    client = signed_in(factories.person("eve", groups=["Approver"], teams=[workflow.team]))
    address = f"/steps/{step(workflow).pk}/compensation/"
    assert address not in client.get(f"/workflows/{workflow.pk}/").text
    assert client.get(address).status_code == 403


def test_the_command_shows_the_call_and_asks_for_it() -> None:
    workflow, _ = done()
    ended = run("compensate", str(workflow.pk), "effect", "--reason", "ordered twice", "--no-input")
    made = Workflow.objects.get(kind="compensation")
    assert (ended.code, str(made.pk) in ended.out) == (0, True)
    assert 'would call undo with {"customer":"acme"' in ended.out
    assert run("compensate", str(workflow.pk), "effect", "--reason", "ordered twice", "--no-input").code == 0
    again = run("compensate", str(workflow.pk), "effect", "--reason", "again", "--no-input")
    assert (again.code, "said: ordered twice That stands" in again.err) == (3, True)
    assert f"undone by workflow {made.pk}" in run("explain", str(workflow.pk)).out
    assert f"undoes step effect of workflow {workflow.pk}" in explain(load(made)).steps[0].compensation
    assert run("compensate", str(made.pk), "undo_effect", "--reason", "x", "--no-input").code == 3
    assert run("compensate", str(made.pk), "nothing", "--reason", "x", "--no-input").code == 1


def test_only_a_compensable_effect_can_declare_how() -> None:
    with pytest.raises(ValueError, match="only a compensable effect"):
        replace(UNDONE, reversibility=Reversibility.IRREVERSIBLE)
    assert Contract.from_json(json.loads(json.dumps(UNDONE.to_json()))) == UNDONE
    assert "compensation" not in KEYED.to_json()
