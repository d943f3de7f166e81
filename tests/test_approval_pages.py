"""The page of one request for approval, without JavaScript and with htmx (S11, S14, S15, S18, S25, S31)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from checkpoint import clock
from checkpoint.models import Approval, AuditEntry
from checkpoint.outcomes import Receipt
from checkpoint.states import ApprovalStatus, StepStatus, WorkflowStatus
from tests import factories
from tests.approval_driver import answer, approver, ask, in_force, pending, requested, status
from tests.console_driver import HTMX, answers, signed_in
from tests.journal_driver import KEYED, OPAQUE, JournalDriver, effect, step, submit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

BOTH = pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])


def address(approval: Approval) -> str:
    return f"/approvals/{approval.pk}/"


def press(client: Client, approval: Approval, kind: str, *, htmx: bool = False, **fields: Any) -> Any:
    """Opens the request, fills in one form and presses its button."""
    form = answers(client.get(address(approval)))[kind]
    sent = {**form["fields"], **form["buttons"], "reason": "Looks right.", **fields}
    return client.post(form["action"], sent, headers=HTMX if htmx else None)


@BOTH
@pytest.mark.parametrize(
    ("kind", "became", "then"),
    [("approve", "approved", StepStatus.PREPARED), ("reject", "rejected", StepStatus.ABANDONED)],
)
def test_an_answer_counts_and_the_page_says_what_happens_now(kind: str, became: str, then: str, htmx: bool) -> None:
    workflow, _ = requested()
    approval, client = pending(workflow), signed_in(approver())
    answered = press(client, approval, kind, htmx=htmx)
    assert answered.status_code == (200 if htmx else 302)
    approval.refresh_from_db()
    assert (approval.status, step(workflow).status) == (became, then)
    page = answered if htmx else client.get(answered["Location"])
    for shown in ("ann", "Looks right.", "Now:"):
        assert shown in page.text
    assert answers(page) == {}


def test_the_page_shows_all_that_an_answer_needs() -> None:
    in_force({"name": "ask about two", "when": {"if": "arguments.cents == 2"}, "set": {"approval": {"needed": 1}}})
    workflow, driver = submit(OPAQUE, effect("first"), effect("second", cents=2), effect("third")), JournalDriver()
    driver.report(driver.claim(), Receipt(operation_id="op-77"))
    page = signed_in(approver()).get(address(pending(workflow))).text
    for shown in (
        "May this run?", "“<bdi>second</bdi>”", "cannot be undone", "effect@1", "opaque", "“ask about two” sets",
        "1 of Approver for the step", "op-77", "receipt only", "then <bdi>third</bdi>", "s words: they are not checked",
        "Invoice acme for November.", "nobody yet", "0 of 1", "1 other step will not run.",
    ):  # fmt: skip
        assert shown in page, shown


def test_s15_the_arguments_are_whole_and_are_what_was_hashed_and_is_executed() -> None:
    workflow, driver = requested(effect(customer="x" * 20_000, cents=7))
    approval, client = pending(workflow), signed_in(approver())
    page = client.get(address(approval))
    assert "x" * 20_000 in page.text
    assert answers(page)["approve"]["fields"]["arguments_hash"] == step(workflow).arguments_hash
    press(client, approval, "approve")
    assert driver.claim().arguments == step(workflow).arguments


def test_a_plan_shows_every_step_whole_and_one_answer_allows_it() -> None:
    steps = [effect("one"), effect("two", customer={"$result": "one#/operation_id"}), effect("three", cents=3)]
    workflow, _ = requested(*steps, scope="plan")
    approval, client = pending(workflow), signed_in(approver())
    page = client.get(address(approval))
    for shown in ("May this plan run?", "3 steps of", "one#/operation_id", "as planned, whole", "2 other steps"):
        assert shown in page.text, shown
    assert answers(page)["approve"]["fields"]["arguments_hash"] == approval.plan_hash
    press(client, approval, "approve")
    assert set(Approval.objects.values_list("status", flat=True)) == {"approved"}
    share = Approval.objects.exclude(pk=approval.pk).first()
    assert share is not None
    assert client.get(address(share)).status_code == 404


@BOTH
def test_who_answered_first_has_no_button_any_more_and_sees_that_another_is_needed(htmx: bool) -> None:
    workflow, driver = requested(needed=2)
    approval, ann, bob = pending(workflow), signed_in(approver("ann")), signed_in(approver("bob"))
    assert (
        "Counts as 1 of 2. Nothing is sent before 1 other person has approved, too." in ann.get(address(approval)).text
    )
    answered = press(ann, approval, "approve", htmx=htmx)
    page = answered if htmx else ann.get(address(approval))
    assert answers(page) == {}
    assert ("1 of 2 have approved" if htmx else "the policy wants another person") in page.text
    assert driver.turn() == []
    press(bob, approval, "approve")
    driver.claim()


# Who, and why that person may not answer.
WITHOUT = [
    (["Agent"], "Default", {}, "you may not decide on approvals"),
    (["Auditor"], "Other", {}, "you may not decide on approvals"),
    (["Approver"], "Default", {"groups": ["Admin"]}, "The policy wants somebody of Admin"),
]


@pytest.mark.parametrize(("groups", "team", "rule", "words"), WITHOUT, ids=["agent", "auditor", "other group"])
def test_s31_who_may_not_answer_is_offered_nothing_and_told_why(
    groups: list[str], team: str, rule: dict[str, Any], words: str
) -> None:
    workflow, _ = requested(**rule)
    approval = pending(workflow)
    client = signed_in(factories.person("max", groups=groups, teams=[factories.team(team)]))
    page = client.get(address(approval))
    assert answers(page) == {}
    assert words in page.text
    refused = send(client, approval, "approve")
    assert (refused.status_code, words in refused.text) == (403, True)
    assert not Decision.objects.exists()
    assert AuditEntry.objects.filter(verb="deny", actor="max").count() == 1


def send(client: Client, approval: Approval, kind: str, **fields: Any) -> Any:
    """Sends an answer that the page does not offer."""
    token = str(client.get("/review/").context["csrf_token"])
    sent = {"csrfmiddlewaretoken": token, "kind": kind, "reason": "why", "arguments_hash": approval.shown_hash}
    where = "withdrawal" if kind == "withdraw" else "answer"
    return client.post(f"{address(approval)}{where}/", {**sent, **fields})


def test_what_one_does_not_see_does_not_exist() -> None:
    workflow, _ = requested()
    client = signed_in(approver("eve", team="Other"))
    assert client.get(address(pending(workflow))).status_code == 404
    assert send(client, pending(workflow), "approve").status_code == 404


def test_s16_who_submitted_it_may_take_it_back_but_not_approve_it() -> None:
    person = approver(groups=("Approver", "Agent"))
    workflow, _ = requested(user=person)
    approval = pending(workflow)
    client = signed_in(person)
    page = client.get(address(approval))
    assert set(answers(page)) == {"withdraw"}
    assert "asked for themselves" in page.text
    assert send(client, approval, "approve").status_code == 403
    assert press(client, approval, "withdraw", reason="Wrong customer.").status_code == 302
    assert "withdrawn by ann: Wrong customer." in client.get(address(approval)).text
    assert status(workflow) == WorkflowStatus.ABANDONED


def test_others_cannot_take_it_back() -> None:
    workflow, _ = requested()
    refused = send(signed_in(approver()), pending(workflow), "withdraw")
    assert refused.status_code == 403
    assert "Only who submitted the workflow" in refused.text
    assert pending(workflow).status == "pending"


@BOTH
def test_s11_who_comes_second_sees_who_decided_what_and_keeps_the_text(htmx: bool) -> None:
    workflow, _ = requested()
    approval, second = pending(workflow), signed_in(approver("bob"))
    form = answers(second.get(address(approval)))["approve"]
    answer(approval, approver("ann"), reason="Checked the invoice.")
    sent = {**form["fields"], "kind": "approve", "reason": "I checked, too."}
    late = second.post(form["action"], sent, headers=HTMX if htmx else None)
    assert late.status_code == 409
    for shown in ("Your answer was not recorded", "ann", "Checked the invoice.", "I checked, too."):
        assert shown in late.text
    assert answers(late) == {}
    assert Decision.objects.count() == 1


@BOTH
def test_an_incomplete_answer_keeps_what_was_typed(htmx: bool) -> None:
    workflow, _ = requested()
    refused = press(signed_in(approver()), pending(workflow), "reject", htmx=htmx, reason="x" * 4001)
    assert refused.status_code == 422
    assert "At most 4000 characters, this has 4001" in refused.text
    assert answers(refused)["reject"]["fields"]["reason"] == "x" * 4001
    assert answers(refused)["approve"]["fields"]["reason"] == ""
    assert ("<html" in refused.text) != htmx


@pytest.mark.parametrize("kind", ["explode", "confirm", ""])
def test_an_answer_of_another_kind_is_refused_in_words(kind: str) -> None:
    workflow, _ = requested()
    refused = send(signed_in(approver()), pending(workflow), kind)
    assert refused.status_code in (409, 422)
    assert "approve" in refused.text
    assert not Decision.objects.exists()


def test_an_answer_on_what_was_not_shown_is_refused() -> None:
    workflow, _ = requested()
    stale = press(signed_in(approver()), pending(workflow), "approve", arguments_hash="0" * 64)
    assert stale.status_code == 409
    assert "not those that you were shown" in stale.text
    assert set(answers(stale)) == {"approve", "reject", "request_changes"}


def test_s18_a_second_press_gets_the_first_answer() -> None:
    workflow, driver = requested()
    approval, client = pending(workflow), signed_in(approver())
    form = answers(client.get(address(approval)))["approve"]
    sent = {**form["fields"], "kind": "approve", "reason": "Looks right."}
    assert [client.post(form["action"], sent).status_code for _ in range(3)] == [302, 302, 302]
    assert (Decision.objects.count(), len(driver.turn())) == (1, 1)


def test_s13_past_its_time_nothing_is_offered_and_nothing_accepted(time_machine: MovableTime) -> None:
    workflow, _ = requested(expires_seconds=60)
    approval, client = pending(workflow), signed_in(approver())
    time_machine.pass_seconds(61)
    page = client.get(address(approval))
    assert answers(page) == {}
    assert "Its time is over" in page.text
    assert send(client, approval, "approve").status_code == 409


def test_s14_the_person_comes_from_the_session_and_never_from_the_form() -> None:
    workflow, _ = requested()
    bob = approver("bob")
    press(signed_in(approver("ann")), pending(workflow), "approve", person=bob.pk, person_name="bob", channel="api")
    decision = Decision.objects.get()
    assert (decision.person_name, decision.channel) == ("ann", "console")


@pytest.mark.parametrize("change", ["disabled", "left the group"])
def test_s25_a_lost_right_counts_at_once(change: str) -> None:
    workflow, _ = requested()
    person, approval = approver(), pending(workflow)
    client = signed_in(person)
    form = answers(client.get(address(approval)))["approve"]
    if change == "disabled":
        User.objects.filter(pk=person.pk).update(is_active=False)
    else:
        person.groups.clear()
    answered = client.post(form["action"], {**form["fields"], "kind": "approve", "reason": "why"})
    assert answered.status_code == (302 if change == "disabled" else 403)
    assert not Decision.objects.exists()


def test_what_is_not_what_was_asked_for_cannot_be_allowed() -> None:
    version, workflow, now = ask(), submit(KEYED), clock.now()
    about = step(workflow)
    rule = {"scope": "step", "on_timeout": "expire", "groups": ["Approver"], "escalate_to": []}
    approval = Approval.objects.create(
        workflow=workflow, step=about, rule=rule, requested_at=now, expires_at=now.replace(year=2100),
        arguments_hash="0" * 64, policy_version=version, tool_version=about.tool_version,
    )  # fmt: skip
    page = signed_in(approver()).get(address(approval))
    assert answers(page) == {}
    assert "What is shown here is not what was asked about" in page.text


def test_the_agents_words_do_not_act() -> None:
    ask()
    hostile = "<script>alert(1)</script>\u202e"
    workflow = submit(OPAQUE, effect(customer=hostile))
    JournalDriver().turn()
    page = signed_in(approver()).get(address(pending(workflow))).text
    assert "<script>alert(1)" not in page
    assert "U+202E" in page


def test_a_poll_of_what_is_shown_already_is_empty() -> None:
    workflow, _ = requested()
    approval, client = pending(workflow), signed_in(approver())
    first = client.get(address(approval), headers=HTMX)
    again = client.get(address(approval), headers={**HTMX, "HX-PTag": first["HX-PTag"]})
    assert (first.status_code, again.status_code) == (200, 204)
    answer(approval, approver("bob"))
    assert client.get(address(approval), headers={**HTMX, "HX-PTag": first["HX-PTag"]}).status_code == 200


def test_a_wait_before_the_start_is_shown_and_the_allowance_can_be_taken_back() -> None:
    workflow, _ = requested(wait_seconds=300)
    approval, client = pending(workflow), signed_in(factories.person("adam", groups=["Admin"]))
    answer(approval, approver())
    page = client.get(address(approval))
    assert "It is not sent before" in page.text
    assert press(client, approval, "withdraw").status_code == 302
    approval.refresh_from_db()
    assert approval.status == ApprovalStatus.WITHDRAWN
