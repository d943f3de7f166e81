"""What people do about a case, on its page: without JavaScript and with htmx, for everybody (S11, S14, S31, S36)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from approvals.casework import assignments, comments, snoozes
from approvals.models import Assignment, Attachment, Comment, Decision, Escalation, Snooze
from checkpoint.models import AuditEntry, Case
from tests import factories
from tests.case_driver import entries, form, offers, onlooker, press, send, stranger, worker
from tests.console_driver import HTMX, Forms, answer, signed_in

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Path:
    """Where the bytes are."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def statement(content: bytes = b"paid") -> SimpleUploadedFile:
    return SimpleUploadedFile("statement.txt", content, content_type="text/plain")


# Each action with the form of a person who fills it in, its table, and what the page then says.
ACTIONS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "claim": ({}, Assignment, "you have it"),
    "assignment": ({"to": "grace", "reason": "She knows the bank."}, Assignment, "grace"),
    "snooze": ({"hours": "4", "reason": "The bank answers tomorrow."}, Snooze, "The bank answers tomorrow."),
    "comments": ({"text": "I asked the bank."}, Comment, "I asked the bank."),
    "escalation": ({"reason": "The customer waits."}, Escalation, "The customer waits."),
    "files": ({"file": statement, "reason": "Monday's statement."}, Attachment, "statement.txt"),
}


def filled(action: str) -> dict[str, Any]:
    return {name: value() if callable(value) else value for name, value in ACTIONS[action][0].items()}


def asked() -> Case:
    case = factories.case()
    worker(case, "grace")
    return case


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_done_shown_and_audited_in_the_name_of_who_is_signed_in(action: str, htmx: bool) -> None:
    case, (_, table, shown) = asked(), ACTIONS[action]
    client = signed_in(worker(case))
    forged = {"person": "grace", "person_name": "grace", "channel": "api"}
    done = press(client, case, action, htmx=htmx, **filled(action), **forged)
    assert done.status_code == (200 if htmx else 302)
    page = done if htmx else client.get(done["Location"])
    assert shown in page.text
    assert ("<html" in page.text) != htmx
    row = table.objects.get()
    assert (getattr(row, "assigned_by_name", None) or row.person_name, row.channel) == ("ada", "console")
    last = AuditEntry.objects.filter(stream_id=case.workflow_id).order_by("seq").last()
    assert last is not None
    assert (last.actor, last.channel) == ("ada", "console")


@pytest.mark.parametrize("action", ACTIONS)
def test_the_same_press_twice_is_one_action(action: str) -> None:
    case = asked()
    client = signed_in(worker(case))
    found = form(client.get(f"/cases/{case.pk}/"), action)
    for _ in range(3):
        assert client.post(found["action"], {**found["fields"], **filled(action)}).status_code == 302
    assert ACTIONS[action][1].objects.count() == 1


@pytest.mark.parametrize("action", [*ACTIONS, "release", "wake"])
def test_who_sees_the_case_but_may_not_decide_is_offered_nothing_and_refused(action: str) -> None:
    case = asked()
    person = onlooker(case)
    assert not offers(signed_in(person).get(f"/cases/{case.pk}/"), action)
    refused = send(person, case, action, **(filled(action) if action in ACTIONS else {}))
    assert refused.status_code == 403
    assert "You may see this, but you may not" in refused.text
    assert AuditEntry.objects.filter(actor="otto", verb="deny").count() == 1


@pytest.mark.parametrize("action", [*ACTIONS, "release", "wake"])
def test_who_does_not_see_the_case_learns_nothing_of_it(action: str) -> None:
    case = asked()
    refused = send(stranger(), case, action, **(filled(action) if action in ACTIONS else {}))
    assert refused.status_code == 404
    assert not any(table.objects.exists() for _, table, _ in ACTIONS.values())


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
@pytest.mark.parametrize(
    ("action", "changed", "refusal"),
    [
        ("assignment", {"to": "nobody"}, "Choose somebody of the team who may decide cases."),
        ("assignment", {"reason": " "}, "Say in a sentence why"),
        ("snooze", {"hours": "9999"}, "A snooze ends"),
        ("snooze", {"hours": "soon"}, "Choose for how long."),
        ("snooze", {"reason": ""}, "Say what you wait for"),
        ("comments", {"text": "x" * 4001}, "At most 4000 characters"),
        ("escalation", {"reason": "x" * 4001}, "At most 4000 characters"),
        ("files", {"reason": ""}, "Say what the file shows."),
        ("files", {"file": ""}, "Choose a file."),
    ],
)
def test_an_incomplete_form_is_refused_beside_its_field_and_keeps_what_was_typed(
    action: str, changed: dict[str, str], refusal: str, htmx: bool
) -> None:
    case = asked()
    sent = {**filled(action), **changed}
    refused = press(worker(case), case, action, htmx=htmx, **sent)
    assert refused.status_code == 422
    assert refusal in refused.text
    assert 'aria-invalid="true"' in refused.text
    kept = form(refused, action)["fields"]
    for name in {"reason", "text"} & sent.keys():
        assert kept[name] == sent[name]
    if action == "snooze":
        assert ('<option value="4" selected>' in refused.text) == (sent["hours"] == "4")
    assert not ACTIONS[action][1].objects.exists()


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
@pytest.mark.parametrize("action", ["claim", "snooze", "escalation"])
def test_s11_who_comes_second_is_told_who_was_first_and_keeps_the_text(action: str, htmx: bool) -> None:
    case = asked()
    ada, grace = signed_in(worker(case)), signed_in(worker(case, "joan"))
    found = form(grace.get(f"/cases/{case.pk}/"), action)
    press(ada, case, action, **filled(action))
    sent = {**found["fields"], **filled(action)} | ({"reason": "My own words."} if action != "claim" else {})
    late = grace.post(found["action"], sent, headers=HTMX if htmx else None)
    assert late.status_code == 409
    assert "Not recorded." in late.text
    assert "ada" in late.text
    if action != "claim":
        assert "My own words." in late.text


def test_a_claim_shows_to_others_who_may_decide_all_the_same() -> None:
    case = asked()
    ada, joan = worker(case), signed_in(worker(case, "joan"))
    press(ada, case, "claim")
    page = joan.get(f"/cases/{case.pk}/")
    assert "ada</bdi> has it; you may answer all the same" in page.text
    assert not offers(page, "claim")
    assert not offers(page, "release")
    answer(joan, case, "confirm")
    assert Decision.objects.get().person_name == "joan"


def test_who_has_a_case_releases_it_and_who_does_not_cannot() -> None:
    case = asked()
    ada = worker(case)
    press(ada, case, "claim")
    refused = send(worker(case, "joan"), case, "release")
    assert (refused.status_code, "Only ada can release it" in refused.text) == (403, True)
    assert press(ada, case, "release").status_code == 302
    assert "nobody has it" in signed_in(ada).get(f"/cases/{case.pk}/").text


def test_assigning_by_what_was_so_a_moment_ago_is_refused() -> None:
    case = asked()
    ada = signed_in(worker(case))
    found = form(ada.get(f"/cases/{case.pk}/"), "assignment")
    assignments.claim(case_id=case.pk, person=worker(case, "joan"), channel="api")
    late = ada.post(found["action"], {**found["fields"], "to": "grace", "reason": "She knows."})
    assert (late.status_code, "joan has this case since" in late.text) == (409, True)


def test_s36_a_snoozed_case_is_shown_as_such_counted_and_woken_by_anybody() -> None:
    case = asked()
    ada, joan = worker(case), signed_in(worker(case, "joan"))
    press(ada, case, "snooze", hours="4", reason="The bank answers tomorrow.")
    waiting, aside = joan.get("/review/"), joan.get("/review/?list=snoozed")
    assert f"/cases/{case.pk}/" not in waiting.text
    assert f"/cases/{case.pk}/" in aside.text
    assert '<span class="count">1<span' in waiting.text, "the head counts it"
    assert press(joan, case, "wake").status_code == 302
    assert snoozes.current(case) is None
    assert f"/cases/{case.pk}/" in joan.get("/review/").text


def test_the_lists_of_the_queue_are_addresses_and_an_unknown_one_is_the_first() -> None:
    case = asked()
    ada = worker(case)
    assignments.claim(case_id=case.pk, person=ada, channel="console")
    client = signed_in(ada)
    for name, has in [("mine", True), ("unassigned", False), ("second_person", False), ("done", False), ("x", True)]:
        page = client.get(f"/review/?list={name}")
        assert (f'href="/cases/{case.pk}/"' in page.text) == has, name
        assert page.status_code == 200, name


def test_an_answered_case_is_in_the_list_of_what_is_done_with_its_answer() -> None:
    case = asked()
    client = signed_in(worker(case))
    answer(client, case, "abandon", reason="The order was cancelled.")
    page = client.get("/review/?list=done")
    assert "ada</bdi> answered abandon" in page.text
    assert "The order was cancelled." in page.text


def test_hostile_words_are_shown_and_do_nothing() -> None:
    case = asked()
    hostile = "<script>alert(1)</script>\u202e\u200b"
    client = signed_in(worker(case, "ada"))
    press(client, case, "comments", text=hostile)
    press(client, case, "snooze", hours="1", reason=hostile)
    press(client, case, "escalation", reason=hostile)
    file = SimpleUploadedFile("<b>\u202egpj.exe", b"MZ", content_type="text/html")
    press(client, case, "files", file=file, reason=hostile)
    page = client.get(f"/cases/{case.pk}/").text
    assert "<script>alert" not in page
    assert "<b>\u202e" not in page
    assert "\u202e" not in page
    assert page.count("U+202E") >= 4


def test_many_comments_are_shown_in_part_with_a_way_to_all() -> None:
    case = asked()
    ada = worker(case)
    for number in range(25):
        comments.comment(case_id=case.pk, person=ada, channel="console", text=f"word {number:02}")
    client = signed_in(ada)
    page = client.get(f"/cases/{case.pk}/").text
    assert "word 24" in page
    assert "word 04" not in page
    assert "Show all 25" in page
    assert "word 04" in client.get(f"/cases/{case.pk}/?comments=all").text


def test_a_page_that_shows_everything_is_not_sent_again_and_one_that_does_not_is() -> None:
    case = asked()
    ada, joan = worker(case), signed_in(worker(case, "joan"))
    first = joan.get(f"/cases/{case.pk}/", headers=HTMX)
    seen = {**HTMX, "HX-PTag": first["HX-PTag"]}
    assert joan.get(f"/cases/{case.pk}/", headers=seen).status_code == 204
    for action in ("claim", "comments", "snooze", "files"):
        press(ada, case, action, **filled(action))
        now = joan.get(f"/cases/{case.pk}/", headers=seen)
        assert now.status_code == 200, action
        seen["HX-PTag"] = now["HX-PTag"]


def test_cases_like_this_one_are_named_on_both_pages() -> None:
    case, other = asked(), factories.case()
    client = signed_in(worker(case))
    assert f'href="/cases/{other.pk}/"' in client.get(f"/cases/{case.pk}/").text
    answer(client, other, "abandon", reason="The customer paid otherwise.")
    assert "The customer paid otherwise." in client.get(f"/cases/{case.pk}/").text
    assert f'href="/cases/{case.pk}/"' in client.get(f"/cases/{other.pk}/").text


def test_a_reload_after_a_refusal_leads_to_the_case() -> None:
    case = asked()
    client = signed_in(worker(case))
    for action in (*ACTIONS, "release", "wake"):
        assert client.get(f"/cases/{case.pk}/{action}/")["Location"] == f"/cases/{case.pk}/"


def test_every_form_of_the_page_carries_its_token() -> None:
    case = asked()
    page = signed_in(worker(case)).get(f"/cases/{case.pk}/")
    assert all("csrfmiddlewaretoken" in found["fields"] for found in Forms(page.text).forms)
    assert len(entries(case, "claim")) == 0


def test_s11_who_comes_second_keeps_the_operation_id_too() -> None:
    case = factories.case()
    seen = {"step_version": str(case.step.version), "arguments_hash": case.step.arguments_hash}
    assert send(worker(case, "bob"), case, "decision", kind="abandon", reason="No.", **seen).status_code == 302
    found = {"kind": "confirm", "reason": "I found it.", "operation_id": "ch_found"}
    late = send(worker(case), case, "decision", **found, **seen)
    assert late.status_code == 409
    assert "I found it." in late.text
    assert "ch_found" in late.text
