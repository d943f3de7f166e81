"""`human.task`: a person fills in a form once; the answer is the step's receipt, and nothing else is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.bulk import jobs
from approvals.bulk.selection import Selection
from approvals.decisions import decide
from approvals.models import Decision, Notice, NoticeTimer
from checkpoint.errors import AlreadyAnswered, ArgumentsInvalid, CaseClosed, DecisionIncomplete, Forbidden, StaleView
from checkpoint.models import AuditEntry, Case, Step, Workflow
from checkpoint.people import Actor
from checkpoint.planning.argument_schemas import closed, prepare_arguments, template_faults
from checkpoint.states import CaseStatus, Standing, StepStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.workflows import abandon
from tests import factories
from tests.approval_driver import in_force
from tests.case_driver import at_once, command, onlooker, raised, worker
from tests.console_driver import answer, answers, signed_in
from tests.journal_driver import JournalDriver, step
from tests.submissions import document, plan_of, published, submit_plan
from workers.publishing import declaration
from workers.tools.human_task import HumanTask, TaskArguments
from workers.tools.wait_until import WaitUntil

SCHEMA = closed(TaskArguments.model_json_schema())
FORM = {
    "properties": {
        "account": {"type": "string", "maxLength": 30, "title": "Cost centre"},
        "cents": {"type": "integer", "minimum": 1, "maximum": 100_000},
        "due": {"type": "string", "format": "date"},
        "note": {"type": "string", "maxLength": 2000, "description": "What the books should say"},
        "taxed": {"type": "boolean"},
        "tier": {"type": "string", "enum": ["gold", "silver"]},
    },
    "required": ["account", "cents"],
}
GIVEN = {"account": "4711", "cents": 1200, "taxed": True, "tier": "gold"}

pytestmark = pytest.mark.usefixtures("database")


def asked(**arguments: Any) -> tuple[Case, JournalDriver]:
    """A workflow whose first step asks, and whose second waits for what is answered; and the worker that found it."""
    task = {"title": "Which account?", "instructions": "Ask the books.", "form": FORM} | arguments
    after = {"name": "after", "tool": "wait.until", "arguments": {"seconds": {"$result": "effect#/facts/answer/cents"}}}
    tools = published(declaration(HumanTask()), declaration(WaitUntil()))
    workflow = submit_plan(plan_of(document({"name": "effect", "tool": "human.task", "arguments": task}, after), tools))
    driver = JournalDriver("human.task@1", "wait.until@1")
    assert driver.turn() == []
    return Case.objects.get(workflow=workflow), driver


def give(case: Case, person: User, data: Any, **more: Any) -> Any:
    """Answers what the case shows now."""
    seen = Step.objects.get(pk=case.step_id)
    return decide(
        case_id=case.pk, kind=DecisionKind.ANSWER, person=person, channel="command", data=data,
        **{"reason": "asked the books", "step_version": seen.version, "arguments_hash": seen.arguments_hash, **more},
    )  # fmt: skip


class TestAsking:
    def test_one_question_is_open_and_nothing_is_held(self) -> None:
        case, driver = asked()
        waits = step(case.workflow)
        assert (case.reason, case.status) == ("human_task", CaseStatus.OPEN)
        assert (waits.status, waits.lease_holder_id, waits.attempt_count) == (StepStatus.PREPARED, None, 0)
        assert Workflow.objects.get(pk=case.workflow_id).status == WorkflowStatus.NEEDS_REVIEW
        assert driver.turn() == []
        assert Case.objects.count() == 1

    def test_those_who_may_answer_are_told_and_a_deadline_hurries_the_reminders(self) -> None:
        ada = factories.person("ada", groups=["Approver"], teams=[factories.team("Default")])
        case, _ = asked(answer_within_seconds=3600)
        assert Notice.objects.filter(case=case, kind="asked", person=ada).exists()
        due = {timer.kind: timer.due_at - case.opened_at for timer in NoticeTimer.objects.filter(case=case)}
        assert due == {"reminder": timedelta(minutes=30), "escalation": timedelta(minutes=45)}

    def test_an_abandoned_workflow_ends_at_once_and_takes_no_answer(self) -> None:
        case, _ = asked()
        abandon(workflow_id=case.workflow_id, actor=Actor("tests", "command"), reason="no longer wanted")
        assert Workflow.objects.get(pk=case.workflow_id).status == WorkflowStatus.ABANDONED
        with pytest.raises(CaseClosed):
            give(case, worker(case), GIVEN)


class TestAnswering:
    def test_the_answer_is_the_receipt_and_what_follows_uses_it(self) -> None:
        case, driver = asked()
        decision = give(case, worker(case), GIVEN)
        done = step(case.workflow)
        assert isinstance(decision, Decision)
        assert (done.status, done.standing, done.attempt_count) == (StepStatus.VERIFIED, Standing.ATTESTED, 0)
        assert done.receipt is not None
        assert done.receipt.facts_value == {"answer": GIVEN, "person": "ada", "reason": "asked the books"}
        driver.turn()
        assert step(case.workflow, "after").arguments == '{"seconds":1200}'
        verbs = AuditEntry.objects.filter(stream_id=case.workflow_id).order_by("seq").values_list("verb", flat=True)
        assert [verb for verb in verbs if verb in ("ask", "start", "answer", "verify", "decide")] == [
            "ask", "start", "answer", "verify", "decide",
        ]  # fmt: skip

    def test_once_and_the_same_person_repeating_it_gets_the_same_decision(self) -> None:
        case, _ = asked()
        ada = worker(case)
        first = give(case, ada, GIVEN)
        assert give(case, ada, GIVEN) == first
        with pytest.raises(CaseClosed):
            give(case, worker(case, "ben"), {**GIVEN, "cents": 1})
        assert step(case.workflow).receipt.facts_value["answer"] == GIVEN  # type: ignore[union-attr]

    def test_of_two_people_in_the_same_moment_one_answers(self) -> None:
        case, _ = asked()
        people = [worker(case, name) for name in ("ada", "ben")]
        seen = Step.objects.get(pk=case.step_id)
        guards = {"step_version": seen.version, "arguments_hash": seen.arguments_hash}
        outcomes = at_once(*(lambda who=who: give(case, who, GIVEN, **guards) for who in people))
        assert [type(error) for error in raised(outcomes)] == [CaseClosed]
        assert Decision.objects.filter(case=case).count() == 1

    @pytest.mark.parametrize(
        ("data", "told"),
        [
            (None, "filled-in form"),
            ("text", "filled-in form"),
            ({}, "“Cost centre” \\(account\\) is missing; cents is missing"),
            ({**GIVEN, "cents": 0}, "cents"),
            ({**GIVEN, "cents": 1.5}, "cents"),
            ({**GIVEN, "cents": "12"}, "cents"),
            ({**GIVEN, "account": "x" * 31}, "account"),
            ({**GIVEN, "due": "2026-02-31"}, "due"),
            ({**GIVEN, "tier": "bronze"}, "tier"),
            ({**GIVEN, "other": 1}, "other"),
            ({**GIVEN, "account": "a\x00b"}, "account"),
        ],
    )
    def test_what_the_form_does_not_ask_for_is_refused_and_changes_nothing(self, data: Any, told: str) -> None:
        case, _ = asked()
        with pytest.raises(DecisionIncomplete, match=told):
            give(case, worker(case), data)
        case.refresh_from_db()
        assert (case.status, step(case.workflow).status) == (CaseStatus.OPEN, StepStatus.PREPARED)

    def test_who_may_not_decide_may_not_answer(self) -> None:
        case, _ = asked()
        with pytest.raises(Forbidden):
            give(case, onlooker(case), GIVEN)

    def test_an_answer_to_what_is_no_longer_asked_is_refused(self) -> None:
        case, _ = asked()
        with pytest.raises(StaleView):
            give(case, worker(case), GIVEN, arguments_hash="0" * 64)

    def test_a_policy_names_the_group_that_answers(self) -> None:
        case, _ = asked()
        in_force({"set": {"decisions": {"human_task": {"answer": {"groups": ["Auditor"]}}}}})
        with pytest.raises(Forbidden, match="Auditor"):
            give(case, worker(case), GIVEN)

    def test_the_command_takes_the_answer_as_json(self) -> None:
        case, _ = asked()
        worker(case)
        given = ["--as", "ada", "--reason", "asked", "--no-input", "--data"]
        assert command("decide", case.pk, "answer", *given, "{}")[0] == 1
        code, said = command("decide", case.pk, "answer", *given, json.dumps(GIVEN))
        assert (code, "Decided: answer" in said) == (0, True)


def test_tasks_are_not_answered_in_bulk() -> None:
    case, _ = asked()
    with pytest.raises(DecisionIncomplete, match="one by one"):
        jobs.create(
            person=worker(case), channel="console", kind=DecisionKind.ANSWER, selection=Selection(cases=(case.pk,)),
            reason="all the same",
        )  # fmt: skip


class TestThePage:
    def test_the_form_is_filled_in_without_javascript(self) -> None:
        case, _ = asked()
        client = signed_in(worker(case))
        page = client.get(f"/cases/{case.pk}/")
        assert set(answers(page)) == {"answer", "abandon"}
        assert "Which account?" in page.text
        fields = {"field-account": "4711", "field-cents": "1200", "field-taxed": "yes", "field-note": "a\r\nb"}
        assert answer(client, case, "answer", fields=fields).status_code == 302
        receipt = step(case.workflow).receipt
        assert receipt is not None
        assert receipt.facts_value["answer"] == {"account": "4711", "cents": 1200, "taxed": True, "note": "a\nb"}

    def test_what_was_typed_stays_beside_the_refusal(self) -> None:
        case, _ = asked()
        client = signed_in(worker(case))
        refused = answer(client, case, "answer", fields={"field-account": "4711", "field-cents": "many"})
        assert refused.status_code == 422
        assert "cents must be" in refused.text
        assert answers(refused)["answer"]["fields"]["field-account"] == "4711"

    def test_hostile_words_are_shown_as_words(self) -> None:
        form = {
            "properties": {
                "a": {
                    "type": "string",
                    "enum": ['"><script>alert(1)</script>', "pay\u202eyap"],
                    "title": "<b>free</b>",
                    "description": "javascript:alert(1)",
                }
            }
        }
        case, _ = asked(title="<img src=x onerror=alert(1)>", instructions="https://evil.example", form=form)
        page = signed_in(worker(case)).get(f"/cases/{case.pk}/").text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<b>free" not in page
        assert 'href="https://evil' not in page
        assert "\u202e" not in page.replace('value="pay\u202eyap"', "")


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string"},
        {"type": "string", "maxLength": 10**9},
        {"type": "string", "maxLength": 10, "pattern": "(a+)+$"},
        {"type": "string", "enum": []},
        {"type": "string", "enum": [str(number) for number in range(51)]},
        {"type": "object", "properties": {}},
        {"type": "array"},
        {"$ref": "#"},
        {"type": "boolean", "default": True},
    ],
)
def test_a_form_is_a_small_subset_of_json_schema(field: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsInvalid):
        prepare_arguments(SCHEMA, {"title": "t", "form": {"properties": {"a": field}}})


@pytest.mark.parametrize("names", [[], ["a" * 41], ["A"], ["a-b"], [f"f{number}" for number in range(21)]])
def test_a_form_has_a_few_well_named_fields(names: list[str]) -> None:
    field = {"type": "boolean"}
    with pytest.raises(ArgumentsInvalid):
        prepare_arguments(SCHEMA, {"title": "t", "form": {"properties": dict.fromkeys(names, field)}})


def test_another_form_by_the_same_person_with_the_same_words_is_not_dropped() -> None:
    case, _ = asked()
    ada = worker(case)
    first = give(case, ada, GIVEN)
    assert give(case, ada, GIVEN) == first
    with pytest.raises(AlreadyAnswered):
        give(case, ada, GIVEN | {"cents": 3000}, step_version=first.step_version)


def field(**changes: Any) -> dict[str, Any]:
    """A form of one field with these changes."""
    return {"properties": {"a": changes}, "required": ["a"]}


NUMBER, TEXT = {"type": "integer"}, {"type": "string", "maxLength": 10}


@pytest.mark.parametrize(
    ("form", "place", "words"),
    [
        ({"properties": {"a": NUMBER}, "required": ["b", "a"]}, "/required/0", "no field of this form; its fields: a"),
        (field(**NUMBER, minimum=5, maximum=4), "/properties/a/minimum", "at most 4, its maximum"),
        (field(**TEXT, minLength=11), "/properties/a/minLength", "at most 10, its maxLength"),
        (field(type="string", enum=[]), "/properties/a/enum", "must hold a choice"),
        (field(type="string", enum=["x", "x"]), "/properties/a/enum", "a choice twice"),
        (field(type="boolean", enum=["x"]), "/properties/a", "one of: text"),
        (
            {"properties": {n: {**TEXT, "maxLength": 4000, "minLength": 4000} for n in "abcd"}, "required": [*"abcd"]},
            "/properties",
            "at least 16000 characters",
        ),
    ],
)
def test_a_form_that_nobody_could_answer_is_refused_with_its_place(form: Any, place: str, words: str) -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        prepare_arguments(SCHEMA, {"title": "Which?", "form": form})
    told = {fault.path: fault.message for fault in refused.value.faults}
    assert words in told[f"/form{place}"]
    assert set(told) <= {f"/form{place}", "/form/properties/a"}, "its alternatives are listed beside it at most"


def test_what_a_form_refers_to_is_judged_once_it_is_known() -> None:
    later = {"$result": "effect#/facts/least"}
    form = {"properties": {"a": {**NUMBER, "minimum": later, "maximum": 4}}, "required": ["a"]}
    arguments = {"title": "Which?", "form": form}
    assert template_faults(SCHEMA, arguments, ["/form/properties/a/minimum"]) == []
    form["required"] = ["b"]
    (fault,) = template_faults(SCHEMA, arguments, ["/form/properties/a/minimum"])
    assert fault.path == "/form/required/0"
    assert template_faults(SCHEMA, {"title": "Which?", "form": {"properties": later}}, ["/form/properties"]) == []
