"""Questions over the API: listed by urgency, answered on exactly what was shown, once."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Decision, Signature
from checkpoint.models import Case, Step
from checkpoint.states import ApprovalStatus, CaseStatus, StepStatus
from tests import approval_driver, factories
from tests.api_driver import Api
from tests.journal_driver import effect
from tests.test_human_task import asked

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def ann() -> User:
    """An approver of the default team."""
    return approval_driver.approver()


@pytest.fixture
def api(ann: User) -> Api:
    """Her program."""
    return Api.of(ann)


@pytest.fixture
def case(ann: User) -> Case:
    """An open case that she may decide."""
    return factories.case(factories.step(factories.workflow(team=ann.teams.get()), StepStatus.UNCERTAIN))


def confirm(api: Api, case: Case, **changes: Any) -> Any:
    """Confirms the case as the API shows it."""
    shown = api.get(f"cases/{case.pk}/").json()
    sent = {"kind": "confirm", "reason": "I looked.", "operation_id": "ch_1"}
    sent |= {name: shown[name] for name in ("step_version", "arguments_hash")}
    return api.post(f"cases/{case.pk}/decision/", sent | changes)


def test_a_case_is_shown_with_its_answers_and_decided(api: Api, case: Case) -> None:
    shown = api.get(f"cases/{case.pk}/").json()
    assert shown["decisions"] == ["confirm", "retry", "abandon"]
    answered = confirm(api, case)
    assert answered.status_code == 201
    assert {"recorded": "decision", "kind": "confirm", "person_name": "ann"}.items() <= answered.json().items()
    decision = Decision.objects.get()
    assert (decision.person_name, decision.channel, decision.operation_id) == ("ann", "api", "ch_1")
    assert api.get(f"cases/{case.pk}/").json()["decision"]["reason"] == "I looked."


def test_s18_the_same_answer_again_is_the_same_decision(api: Api, case: Case) -> None:
    first, again = confirm(api, case), confirm(api, case)
    assert first.json()["at"] == again.json()["at"]
    assert Decision.objects.count() == 1


def test_s11_who_comes_second_is_told_who_was_first(api: Api, case: Case) -> None:
    other = Api.of(approval_driver.approver("bob"))
    confirm(api, case)
    answered = confirm(other, case, kind="retry")
    assert (answered.status_code, answered.json()["code"]) == (409, "case_closed")
    assert "ann already decided" in answered.json()["detail"]


def test_s12_an_answer_on_other_arguments_or_another_version_changes_nothing(api: Api, case: Case) -> None:
    assert confirm(api, case, arguments_hash="0" * 64).json()["code"] == "stale_view"
    assert confirm(api, case, step_version=99).json()["code"] == "stale_view"
    assert Case.objects.get().status == CaseStatus.OPEN


def test_s14_who_decides_is_the_tokens_account_whatever_the_body_says(api: Api, case: Case) -> None:
    answered = confirm(api, case, person_name="grace")
    assert answered.json()["faults"][0]["path"] == "/person_name"
    assert not Decision.objects.exists()


@pytest.mark.parametrize("wrong", [{"kind": "maybe"}, {"reason": " "}, {"reason": 7}, {"step_version": "1"}])
def test_an_answer_with_faults_says_them(api: Api, case: Case, wrong: dict[str, Any]) -> None:
    answered = confirm(api, case, **wrong)
    assert answered.status_code == 422
    assert answered.json()["faults"][0]["path"] == f"/{next(iter(wrong))}"
    assert Case.objects.get().status == CaseStatus.OPEN


def test_a_second_signature_is_waited_for(api: Api, case: Case) -> None:
    approval_driver.in_force({"set": {"decisions": {"outcome_unknown": {"confirm": {"needed": 2}}}}})
    assert confirm(api, case).json()["recorded"] == "signature"
    assert Signature.objects.count() == 1
    assert confirm(Api.of(approval_driver.approver("bob")), case).json()["recorded"] == "decision"


def test_a_task_is_answered_with_what_its_form_asks_for() -> None:
    case, _ = asked()
    api = Api.of(approval_driver.approver())
    assert api.get(f"cases/{case.pk}/").json()["decisions"] == ["answer", "abandon"]
    wrong = confirm(api, case, kind="answer", operation_id="", data={"cents": "many"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "decision_incomplete")
    given = {"account": "4711", "cents": 1200}
    assert confirm(api, case, kind="answer", operation_id="", data=given).status_code == 201
    receipt = api.get(f"steps/{case.step_id}/evidence/").json()["items"][0]
    assert receipt["facts"]["answer"] == given


def test_a_token_without_the_scope_decides_nothing(ann: User, case: Case) -> None:
    assert confirm(Api.of(ann, ["read", "submit"]), case).status_code == 403
    assert Case.objects.get().status == CaseStatus.OPEN


def test_a_request_shows_what_is_hashed_and_is_answered(api: Api) -> None:
    workflow, journal = approval_driver.requested(effect("pay"))
    approval = approval_driver.pending(workflow)
    shown = api.get(f"approvals/{approval.pk}/").json()
    assert shown["shares"][0]["arguments_text"] == Step.objects.get().arguments
    address = f"approvals/{approval.pk}/decision/"
    sent = {"kind": "approve", "reason": "Fine."}
    assert api.post(address, {**sent, "arguments_hash": "0" * 64}).json()["code"] == "stale_view"
    assert api.post(address, {**sent, "arguments_hash": shown["arguments_hash"]}).status_code == 201
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.APPROVED
    assert len(journal.turn()) == 1


def test_s16_who_submitted_it_takes_it_back_but_does_not_approve_it() -> None:
    ann = approval_driver.approver(groups=("Approver", "Operator"))
    api = Api.of(ann)
    workflow, _ = approval_driver.requested(effect("pay"), user=ann)
    approval = approval_driver.pending(workflow)
    sent = {"kind": "approve", "reason": "Fine.", "arguments_hash": approval.shown_hash}
    assert api.post(f"approvals/{approval.pk}/decision/", sent).status_code == 403
    taken_back = api.post(f"approvals/{approval.pk}/withdrawal/", {"reason": "Not needed."})
    assert (taken_back.status_code, taken_back.json()["status"]) == (200, "withdrawn")


def test_questions_come_in_the_order_of_the_queue(api: Api, case: Case) -> None:
    workflow, _ = approval_driver.requested(effect("pay"))
    rows = api.get("questions/").json()["items"]
    assert {(row["noun"], row["id"]) for row in rows} == {
        ("case", str(case.pk)),
        ("approval", str(approval_driver.pending(workflow).pk)),
    }
    assert api.get("questions/?shown=done").json()["items"] == []
    assert api.get("questions/?shown=everything").status_code == 400
