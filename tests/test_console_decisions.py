"""Deciding on the case page, without JavaScript and with htmx (S11, S18, S19, S30, S31, S35, S37, S38)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Decision
from checkpoint.models import Case, Step
from checkpoint.states import CASE_RULES, CaseReason, StepStatus
from tests import factories
from tests.console_driver import HTMX, answer, answers, signed_in

pytestmark = pytest.mark.usefixtures("database")


def asked(**fields: Any) -> Case:
    """An open case about an uncertain step with one step before it and one behind."""
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.VERIFIED, name="open_ticket")
    step = factories.step(workflow, StepStatus.UNCERTAIN, name="charge_card", **fields)
    factories.step(workflow, StepStatus.PLANNED, name="mail_customer")
    return factories.case(step)


def approver(case: Case, name: str = "ada") -> Any:
    return signed_in(factories.person(name, groups=["Approver"], teams=[case.workflow.team]))


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
@pytest.mark.parametrize(
    ("kind", "became"),
    [("confirm", StepStatus.COMMITTED), ("retry", StepStatus.FAILED), ("abandon", StepStatus.ABANDONED)],
)
def test_an_answer_moves_the_step_and_the_page_says_what_happens_now(kind: str, became: str, htmx: bool) -> None:
    case = asked()
    client = approver(case)
    answered = answer(client, case, kind, reason="Asked the bank.", htmx=htmx)
    assert answered.status_code == (200 if htmx else 302)
    assert Step.objects.get(pk=case.step_id).status == became
    page = answered if htmx else client.get(answered["Location"])
    assert f"answered: {kind}" in page.text
    assert "Asked the bank." in page.text
    assert "Now:" in page.text
    assert answers(page) == {}


def test_confirm_takes_the_operation_id_that_was_found() -> None:
    case = asked()
    answer(approver(case), case, "confirm", fields={"operation_id": " ch_77 "})
    assert Decision.objects.get().operation_id == "ch_77"
    assert Step.objects.get(pk=case.step_id).operation_id == "ch_77"


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"reason": "  ", "operation_id": "ch_77"}, "Say in a sentence why"),
        ({"reason": "x" * 4001, "operation_id": "ch_77"}, "At most 4000 characters"),
        ({"reason": "why", "operation_id": "y" * 256}, "At most 255 characters"),
    ],
)
def test_an_incomplete_answer_keeps_what_was_typed(fields: dict[str, str], refusal: str, htmx: bool) -> None:
    case = asked()
    refused = answer(approver(case), case, "confirm", htmx=htmx, fields=fields)
    assert refused.status_code == 422
    assert refusal in refused.text
    kept = answers(refused)["confirm"]["fields"]
    assert (kept["reason"], kept["operation_id"]) == (fields["reason"], fields["operation_id"])
    assert ("<html" in refused.text) != htmx
    assert not Decision.objects.exists()


def test_an_answer_of_no_known_kind_is_refused_in_words() -> None:
    case = asked()
    client = approver(case)
    form = answers(client.get(f"/cases/{case.pk}/"))["confirm"]
    refused = client.post(form["action"], {**form["fields"], "kind": "explode", "reason": "why"})
    assert refused.status_code == 422
    assert "choose one of confirm" in refused.text


def test_a_second_press_gets_the_first_answer_and_changes_nothing() -> None:
    case = asked()
    client = approver(case)
    form = answers(client.get(f"/cases/{case.pk}/"))["retry"]
    sent = {**form["fields"], "kind": "retry", "reason": "Nothing at the bank."}
    assert [client.post(form["action"], sent).status_code for _ in range(3)] == [302, 302, 302]
    assert Decision.objects.count() == 1
    assert Step.objects.get(pk=case.step_id).version == case.step.version + 1


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
def test_who_comes_second_sees_who_decided_what_and_keeps_the_text(htmx: bool) -> None:
    case = asked()
    first, second = approver(case, "ada"), approver(case, "grace")
    form = answers(second.get(f"/cases/{case.pk}/"))["retry"]
    answer(first, case, "confirm", reason="It is on the statement.")
    sent = {**form["fields"], "kind": "retry", "reason": "I see nothing."}
    late = second.post(form["action"], sent, headers=HTMX if htmx else None)
    assert late.status_code == 409
    for shown in (
        "Your answer was not recorded",
        "ada",
        "answered: confirm",
        "It is on the statement.",
        "I see nothing.",
    ):
        assert shown in late.text
    assert answers(late) == {}
    assert Decision.objects.get().kind == "confirm"


@pytest.mark.parametrize(
    "changed",
    [{"step_version": "999"}, {"step_version": "x"}, {"step_version": "9" * 5000}, {"arguments_hash": "0" * 64}],
)
def test_an_answer_on_what_is_no_longer_so_is_refused_beside_what_is_now(changed: dict[str, str]) -> None:
    case = asked()
    stale = answer(approver(case), case, "retry", reason="Nothing at the bank.", fields=changed)
    assert stale.status_code == 409
    assert "The step moved on since you looked" in stale.text
    form = answers(stale)["retry"]
    assert form["fields"]["reason"] == "Nothing at the bank."
    assert form["fields"]["step_version"] == str(case.step.version)


@pytest.mark.parametrize("reason", CaseReason)
def test_only_what_the_reason_allows_is_offered_and_nothing_else_accepted(reason: CaseReason) -> None:
    status = CASE_RULES[reason].step_status or StepStatus.PREPARED
    case = factories.case(factories.step(factories.workflow(), status), reason)
    client = approver(case)
    page = client.get(f"/cases/{case.pk}/")
    assert set(answers(page)) == set(CASE_RULES[reason].decisions)
    form = next(iter(answers(page).values()))
    for kind in {"confirm", "retry", "continue", "acknowledge"} - set(CASE_RULES[reason].decisions):
        refused = client.post(form["action"], {**form["fields"], "kind": kind, "reason": "why"})
        assert refused.status_code == 409
        assert "This case can be answered with" in refused.text


def test_a_case_that_evidence_settled_says_so() -> None:
    case = asked()
    Case.objects.filter(pk=case.pk).update(status="settled", closing="a late receipt", closed_at=case.opened_at)
    page = approver(case).get(f"/cases/{case.pk}/")
    assert "Nobody needs to answer any more" in page.text
    assert "a late receipt" in page.text
    assert answers(page) == {}


def test_arguments_are_whole_however_large_and_are_what_was_hashed() -> None:
    case = asked(arguments={"lines": [f"line {number}" for number in range(20_000)]})
    page = approver(case).get(f"/cases/{case.pk}/")
    assert "line 19999" in page.text
    assert "more characters" not in page.text
    assert answers(page)["confirm"]["fields"]["arguments_hash"] == case.arguments_hash


def test_nothing_can_be_decided_on_arguments_that_do_not_match_their_hash() -> None:
    workflow = factories.workflow()
    step = factories.step(workflow, StepStatus.UNCERTAIN, arguments_hash="0" * 64)
    case = factories.case(step)
    page = approver(case).get(f"/cases/{case.pk}/")
    assert answers(page) == {}
    assert "do not match the hash that was written ahead" in page.text


def test_the_record_is_on_the_page() -> None:
    case = asked()
    factories.evidence(case.step, finding="not_visible", source="site", operation_id="op_9", standing="untrusted")
    page = approver(case).get(f"/cases/{case.pk}/").text
    attempt = case.step.attempts.get()
    for shown in (
        case.step.idempotency_key, attempt.worker.host, "not known", "not visible", "site", "op_9", "untrusted",
        "Search the card processor", f'href="https://cards.example/search?q={case.step.idempotency_key}"',
        "Whether the request reached the provider.", "Refund order 1007",
    ):  # fmt: skip
        assert shown in page, shown


def test_after_an_answer_the_page_leads_to_the_next_question() -> None:
    case, other = asked(), asked()
    client = approver(case)
    answered = answer(client, case, "abandon", htmx=True)
    assert f'href="/cases/{other.pk}/"' in answered.text


def test_a_reload_of_a_refused_answer_shows_the_case() -> None:
    case = asked()
    assert approver(case).get(f"/cases/{case.pk}/decision/")["Location"] == f"/cases/{case.pk}/"
