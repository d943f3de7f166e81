"""Where a policy says `step_up`, whoever answers has authenticated again shortly before: by every channel."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import decisions
from approvals.bulk import jobs
from approvals.bulk.preview import preview
from approvals.models import Decision, Signature
from approvals.step_up import Authentication
from checkpoint import clock, command_line
from checkpoint.errors import AuthenticateAgain
from checkpoint.models import AuditEntry, Case
from checkpoint.short_ids import short
from checkpoint.states import CaseStatus, StepStatus
from checkpoint.states import Decision as DecisionKind
from tests import bulk_driver, factories
from tests.approval_driver import answer as answer_request
from tests.approval_driver import approver, in_force, pending, requested
from tests.case_driver import entries, form, worker
from tests.console_driver import HTMX, answers, signed_in
from tests.journal_driver import effect
from tests.law_driver import RawSession, raw
from tests.test_commands import run
from tests.time_driver import MovableTime

__all__ = ["raw"]

pytestmark = pytest.mark.usefixtures("database")

STEP_UP = {"name": "prove it", "set": {"step_up": True}}
PASSWORD = "a long and quiet river"


def person(case: Case, name: str = "ada") -> User:
    ada = worker(case, name)
    ada.set_password(PASSWORD)
    ada.save()
    return ada


def decide(case: Case, ada: User, at: Any = None) -> Any:
    return decisions.decide(
        case_id=case.pk, kind=DecisionKind.CONFIRM, person=ada, channel="api", reason="I looked.",
        step_version=case.step.version, arguments_hash=case.step.arguments_hash, authentication=Authentication(at),
    )  # fmt: skip


def test_a_decision_counts_only_shortly_after_its_person_authenticated() -> None:
    in_force(STEP_UP)
    case = factories.case()
    ada, now = person(case), clock.now()
    for stale in (None, now - timedelta(minutes=10, seconds=1)):
        with pytest.raises(AuthenticateAgain, match="entered their password within the last 10 minutes"):
            decide(case, ada, stale)
    assert not Decision.objects.exists()
    assert [entry.actor for entry in AuditEntry.objects.filter(verb="deny")] == ["ada", "ada"]
    decide(case, ada, now - timedelta(minutes=9))
    (entry,) = entries(case, "decide")
    assert "authenticated_at" in entry.text


def test_without_such_a_rule_nobody_has_to_and_it_binds_only_what_it_matches() -> None:
    in_force({**STEP_UP, "when": {"tool": "something.else"}})
    case = factories.case()
    assert decide(case, person(case)).kind == "confirm"
    assert "authenticated_at" not in entries(case, "decide")[0].text


def test_a_first_signature_needs_it_too() -> None:
    in_force({"set": {"step_up": True, "decisions": {"outcome_unknown": {"confirm": {"needed": 2}}}}})
    case = factories.case()
    ada = person(case)
    with pytest.raises(AuthenticateAgain):
        decide(case, ada)
    assert not Signature.objects.exists()
    assert isinstance(decide(case, ada, clock.now()), Signature)


@pytest.mark.parametrize("kind", [DecisionKind.APPROVE, DecisionKind.REJECT, DecisionKind.REQUEST_CHANGES])
def test_every_answer_to_a_request_needs_it(kind: DecisionKind) -> None:
    workflow, _ = requested()
    in_force({"set": {"approval": {"needed": 1}, "drift": {"policy": "continue"}}}, STEP_UP)
    request, ann = pending(workflow), approver()
    with pytest.raises(AuthenticateAgain):
        answer_request(request, ann, kind)
    assert not Decision.objects.exists()
    answer_request(request, ann, kind, authentication=Authentication(clock.now()))


def test_a_plan_needs_it_where_one_of_its_steps_does() -> None:
    workflow, _ = requested(effect("one"), effect("two", cents=900), scope="plan")
    in_force(
        {"set": {"approval": {"needed": 1, "scope": "plan"}, "drift": {"policy": "continue"}}},
        {"when": {"if": "arguments.cents > 500"}, "set": {"step_up": True}},
    )
    with pytest.raises(AuthenticateAgain):
        answer_request(pending(workflow), approver())


def late(client: Client, time_machine: MovableTime) -> Client:
    """The same browser, so much later that its sign-in does not count any more."""
    time_machine.pass_seconds(660)
    return client


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
def test_the_case_page_asks_for_the_password_in_the_answers_form_and_keeps_what_was_typed(
    htmx: bool, time_machine: MovableTime
) -> None:
    in_force(STEP_UP)
    case = factories.case()
    ada = signed_in(person(case))
    confirm = answers(ada.get(f"/cases/{case.pk}/"))["confirm"]
    assert "password" not in confirm["fields"], "who signed in just now is not asked again"
    late(ada, time_machine)
    sent = {**confirm["fields"], "kind": "confirm", "reason": "It is on the statement."}
    headers = HTMX if htmx else None
    refused = ada.post(confirm["action"], sent, headers=headers)
    assert (refused.status_code, "entered their password" in refused.text) == (403, True)
    asked = answers(refused)["confirm"]
    assert (asked["fields"]["reason"].strip(), asked["fields"]["password"]) == ("It is on the statement.", "")
    wrong = ada.post(asked["action"], {**asked["fields"], "kind": "confirm", "password": "guess"}, headers=headers)
    assert (wrong.status_code, "This is not your password" in wrong.text, "guess" in wrong.text) == (403, True, False)
    assert not Decision.objects.exists()
    right = {**answers(wrong)["confirm"]["fields"], "kind": "confirm", "password": PASSWORD}
    assert ada.post(asked["action"], right, headers=headers).status_code == (200 if htmx else 302)
    assert (Decision.objects.get().person_name, Decision.objects.get().reason) == ("ada", "It is on the statement.")
    assert AuditEntry.objects.filter(verb="authenticate_again", actor="ada").count() == 1


def test_the_page_of_a_request_asks_for_it_too_and_for_some_time_once(time_machine: MovableTime) -> None:
    workflow, _ = requested(effect("one"))
    in_force({"set": {"approval": {"needed": 1}, "drift": {"policy": "continue"}}}, STEP_UP)
    request, ann = pending(workflow), approver()
    ann.set_password(PASSWORD)
    ann.save()
    client = late(signed_in(ann), time_machine)
    approve = answers(client.get(f"/approvals/{request.pk}/"))["approve"]
    sent = {**approve["fields"], "kind": "approve", "reason": "Fine."}
    refused = client.post(approve["action"], sent)
    assert (refused.status_code, "entered their password" in refused.text) == (403, True)
    assert answers(refused)["approve"]["fields"]["reason"].strip() == "Fine."
    assert client.post(approve["action"], {**sent, "password": PASSWORD}).status_code == 302
    other = factories.case(factories.step(factories.workflow(team=workflow.team), StepStatus.UNCERTAIN))
    assert "password" not in answers(client.get(f"/cases/{other.pk}/"))["confirm"]["fields"]


def test_bulk_answers_count_the_authentication_that_its_start_had(time_machine: MovableTime) -> None:
    in_force(STEP_UP)
    ada, cases = bulk_driver.decider(), bulk_driver.cases(2)
    stale = bulk_driver.started(ada, DecisionKind.CONFIRM, cases)
    foreseen = preview(stale)
    assert (foreseen.needs_password, foreseen.answered) == (2, [])
    bulk_driver.run(stale)
    assert bulk_driver.results(stale) == ["refused", "refused"]
    assert bulk_driver.messages(stale) == [one.message for one in foreseen.expected]
    draft, fresh = bulk_driver.prepared(ada, DecisionKind.CONFIRM, cases), Authentication(clock.now())
    assert len(preview(draft, fresh).answered) == 2
    jobs.start(job_id=draft.pk, person=ada, channel="console", authentication=fresh)
    time_machine.pass_seconds(3600)  # an hour in which no worker came
    bulk_driver.run(draft)
    assert bulk_driver.results(draft) == ["done", "done"]


def test_a_bulk_job_that_runs_for_too_long_counts_its_starts_authentication_no_more(time_machine: MovableTime) -> None:
    in_force(STEP_UP)
    ada, cases = bulk_driver.decider(), bulk_driver.cases(1)
    draft, fresh = bulk_driver.prepared(ada, DecisionKind.CONFIRM, cases), Authentication(clock.now())
    jobs.start(job_id=draft.pk, person=ada, channel="console", authentication=fresh)
    time_machine.pass_seconds(4 * 3600 + 1)
    bulk_driver.run(draft)
    assert bulk_driver.results(draft) == ["refused"]


def test_bulk_approvals_obey_it() -> None:
    in_force(STEP_UP)
    ada, request = bulk_driver.decider(), bulk_driver.approval()
    stale = bulk_driver.started(ada, DecisionKind.APPROVE, [request])
    foreseen = preview(stale)
    bulk_driver.run(stale)
    assert (bulk_driver.results(stale), foreseen.needs_password) == (["refused"], 1)


def test_the_page_of_a_bulk_job_takes_the_password_and_then_starts(time_machine: MovableTime) -> None:
    in_force(STEP_UP)
    case = factories.case()
    ada = person(case)
    job, client = bulk_driver.prepared(ada, DecisionKind.CONFIRM, [case]), late(signed_in(ada), time_machine)
    asked = form(client.get(f"/bulk-jobs/{job.pk}/"), "password")
    wrong = client.post(asked["action"], {**asked["fields"], "password": "guess"})
    assert (wrong.status_code, "This is not your password" in wrong.text) == (403, True)
    assert client.post(asked["action"], {**asked["fields"], "password": PASSWORD}).status_code == 302
    start = form(client.get(f"/bulk-jobs/{job.pk}/"), "start")
    client.post(start["action"], start["fields"])
    bulk_driver.run(job)
    assert bulk_driver.results(job) == ["done"]


def test_the_commands_ask_at_a_terminal_and_refuse_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    in_force(STEP_UP)
    case = factories.case()
    ada = person(case)
    words = ("decide", short(case.pk), "confirm", "--reason", "I looked.", "--as", ada.username)
    refused = run(*words)
    assert (refused.code, "entered their password" in refused.err) == (1, True)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: "y")
    for typed, code in (("guess", 1), (PASSWORD, 0)):
        monkeypatch.setattr(command_line, "getpass", lambda prompt, typed=typed: typed)
        ended = run(*words)
        assert (ended.code, "not the password" in ended.err) == (code, code == 1)
    case.refresh_from_db()
    case.step.refresh_from_db()
    assert (case.status, case.step.status) == (CaseStatus.DECIDED, StepStatus.COMMITTED)


def test_what_a_started_job_knows_of_the_authentication_is_fixed(raw: RawSession) -> None:
    job = bulk_driver.started(bulk_driver.decider(), DecisionKind.CONFIRM, bulk_driver.cases(1))
    assert raw.updates("approvals_bulkjob", job.pk, authenticated_at=clock.now()) == "authentication_is_fixed"
