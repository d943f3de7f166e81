"""Policies in the console, as a browser without JavaScript shows them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from approvals.rules.policy_versions import activate, in_force
from checkpoint.models import AuditEntry, PolicyVersion, Workflow
from checkpoint.people import Actor
from tests import factories, submissions
from tests.audit_driver import system_entries
from tests.console_driver import HTMX, Forms, signed_in
from tests.policies_driver import CAREFUL

pytestmark = pytest.mark.usefixtures("database")

HOSTILE = "rules: []\n# <script>alert(1)</script> \u202edeifirev\n"
PAGES = ["/policies/", "/policies/1/", "/policies/difference/?old=1&new=2"]


def put(text: str = CAREFUL, reason: str = "Approvals.") -> PolicyVersion:
    """Puts a policy in force, not through a page."""
    return activate(text=text, actor=Actor("root", "command"), user=None, reason=reason, seen=in_force().number)


@pytest.fixture
def admin() -> Client:
    """A browser in which an administrator is signed in."""
    return signed_in(factories.person("ada", groups=["Admin"]))


def form(page: Any) -> dict[str, Any]:
    """The fields of the form by which a policy is put in force."""
    fields: dict[str, Any] = next(each for each in Forms(page.text).forms if "activation" in each["action"])["fields"]
    return {**fields, "text": fields["text"].removeprefix("\n")}  # as browsers read a text area


def press(client: Client, page: Any, action: str, **typed: Any) -> Any:
    """Presses a button of that form."""
    return client.post("/policies/activation/", {**form(page), "action": action, **typed})


def previewed(client: Client, text: str = CAREFUL) -> Any:
    """The form after a look at what the text changes."""
    return press(client, client.get("/policies/activation/"), "preview", text=text)


# Looking


@pytest.mark.parametrize("group", ["Operator", "Approver", "Auditor", "Agent", "Admin", ""])
@pytest.mark.parametrize("page", PAGES)
def test_everybody_with_an_account_reads_policies(group: str, page: str) -> None:
    put()
    assert signed_in(factories.person("eve", groups=[group] if group else [])).get(page).status_code == 200


def test_nobody_without_an_account_does() -> None:
    assert Client().get("/policies/")["Location"] == "/login/?next=/policies/"


def test_the_list_shows_who_put_what_in_force_and_why(admin: Client) -> None:
    put(reason="What cannot be undone is <b>approved</b>.")
    page = admin.get("/policies/").text
    assert page.index("Version 2") < page.index("Version 1")
    assert page.count("in force</span>") == 1
    assert "What cannot be undone is &lt;b&gt;approved&lt;/b&gt;." in page
    assert "Put a policy in force" in page
    assert "Put a policy in force" not in signed_in(factories.person("eve", groups=["Auditor"])).get("/policies/").text


def test_the_list_is_paged(admin: Client) -> None:
    for number in range(2, 53):
        PolicyVersion.objects.create(number=number, sha256="0" * 64, rules={}, reason=f"r{number}", author="tests")
    first = admin.get("/policies/").text
    assert "Version 52" in first
    assert "Version 2<" not in first
    assert "Version 2<" in admin.get("/policies/?before=3").text


def test_a_version_shows_its_text_whole(admin: Client) -> None:
    stored = put()
    page = admin.get("/policies/2/").text
    assert "  - name: large amounts need two approvers" in page
    assert stored.sha256 in page
    assert "max_attempts: 3" in admin.get("/policies/1/").text


@pytest.mark.parametrize("address", ["/policies/9/", "/policies/difference/?old=1&new=x", "/policies/difference/"])
def test_what_does_not_exist_says_so(admin: Client, address: str) -> None:
    refused = admin.get(address)
    assert refused.status_code == 404
    assert "There is no policy version" in refused.text


def test_two_versions_stand_side_by_side(admin: Client) -> None:
    submissions.published()
    put()
    put(CAREFUL.replace("needed: 2\n", "needed: 3\n"), reason="Three.")
    page = admin.get("/policies/difference/?old=2&new=3").text
    assert '<td class="old"><pre>        needed: 2</pre>' in page
    assert '<td class="new"><pre>        needed: 3</pre>' in page
    assert 'class="unseen"> removed' in page
    assert "What changes for each tool" in page
    assert "The texts are the same" in admin.get("/policies/difference/?old=2&new=2").text


def test_hostile_text_is_shown_and_does_nothing(admin: Client) -> None:
    put(HOSTILE, reason="<script>\u202e")
    for page in ("/policies/", "/policies/2/", "/policies/difference/?old=1&new=2"):
        text = admin.get(page).text
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert "U+202E" in text


# Putting in force


def test_a_policy_is_put_in_force_in_two_steps(admin: Client) -> None:
    workflow = submissions.submitted(submissions.mail())
    start = admin.get("/policies/activation/")
    assert "max_attempts: 3" in form(start)["text"]
    looked = press(admin, start, "preview", text=CAREFUL)
    assert "<strong>1 in 1 workflow</strong> would be ruled differently" in looked.text
    assert f"/workflows/{workflow.pk}/" in looked.text
    assert "approval: no approval → 1 of Approver" in looked.text
    assert "no tool is called http.request" in looked.text
    assert in_force().number == 1
    done = press(admin, looked, "activate", reason="Approvals.")
    assert (done.status_code, done["Location"]) == (302, "/policies/2/")
    stored = in_force()
    assert (stored.text, stored.reason, stored.author) == (CAREFUL, "Approvals.", "ada")
    assert [(entry["actor"], entry["channel"]) for entry in system_entries("activate")] == [("ada", "console")]


def test_a_file_goes_before_the_text(admin: Client) -> None:
    chosen = SimpleUploadedFile("policy.yaml", CAREFUL.replace("\n", "\r\n").encode())
    looked = press(admin, admin.get("/policies/activation/"), "preview", text="rules: []", file=chosen)
    assert form(looked)["text"] == CAREFUL
    press(admin, looked, "activate", reason="From a file.")
    assert in_force().text == CAREFUL


def test_a_file_that_is_not_utf8_says_so(admin: Client) -> None:
    chosen = SimpleUploadedFile("policy.yaml", b"rules: []\n#\xff")
    refused = press(admin, admin.get("/policies/activation/"), "preview", text="rules: []", file=chosen)
    assert refused.status_code == 422
    assert "not UTF-8: byte 11" in refused.text


def test_faults_stand_beside_what_was_typed(admin: Client) -> None:
    refused = previewed(admin, "rules:\n- {name: <b>, set: {approval: {needed: 0, groups: [Nobody]}}}")
    assert refused.status_code == 422
    assert "<code>/rules/0/set/approval/needed</code>" in refused.text
    assert form(refused)["text"] == "rules:\n- {name: <b>, set: {approval: {needed: 0, groups: [Nobody]}}}"
    assert "Put version 2 in force" not in refused.text


def test_only_the_text_that_was_looked_at_is_put_in_force(admin: Client) -> None:
    other = CAREFUL.replace("needed: 1", "needed: 2")
    refused = press(admin, previewed(admin), "activate", text=other, reason="Approvals.")
    assert refused.status_code == 409
    assert "not the one that you looked at" in refused.text
    assert in_force().number == 1
    assert press(admin, refused, "activate", text=other, reason="Approvals.").status_code == 302


def test_a_text_cannot_be_put_in_force_without_a_look(admin: Client) -> None:
    start = admin.get("/policies/activation/")
    assert press(admin, start, "activate", text=CAREFUL, reason="Approvals.").status_code == 409
    assert in_force().number == 1


def test_without_a_reason_nothing_is_changed(admin: Client) -> None:
    refused = press(admin, previewed(admin), "activate", reason=" ")
    assert refused.status_code == 422
    assert "Say in a sentence why" in refused.text
    assert 'aria-invalid="true" aria-describedby="reason-refusal"' in refused.text
    assert in_force().number == 1


def test_another_version_in_between_is_a_conflict_and_shows_the_difference_to_it(admin: Client) -> None:
    looked = previewed(admin)
    put("rules: []", reason="Calm.")
    refused = press(admin, looked, "activate", reason="Approvals.")
    assert refused.status_code == 409
    assert "root put version 2 in force since you looked: Calm." in refused.text
    assert form(refused)["seen"] == "2"
    assert press(admin, refused, "activate", reason="Approvals.").status_code == 302


def test_what_is_in_force_already_is_a_conflict(admin: Client) -> None:
    put()
    refused = press(admin, previewed(admin), "activate", reason="Again.")
    assert refused.status_code == 409
    assert "It is active already, as version 2; nothing was changed." in refused.text


@pytest.mark.parametrize("action", ["look", "preview", "activate"])
@pytest.mark.parametrize("group", ["Operator", "Approver", "Auditor", "Agent"])
def test_others_may_not_and_that_is_recorded(group: str, action: str, admin: Client) -> None:
    eve = signed_in(factories.person("eve", groups=[group]))
    fields = form(previewed(admin)) | {"reason": "Mine.", "action": action}
    token = str(eve.get("/policies/").context["csrf_token"])
    if action == "look":
        refused = eve.get("/policies/activation/")
    else:
        refused = eve.post("/policies/activation/", {**fields, "csrfmiddlewaretoken": token})
    assert refused.status_code == 403
    assert "you may not put policies in force" in refused.text
    assert in_force().number == 1
    assert AuditEntry.objects.filter(actor="eve", verb="deny").count() == (0 if action == "look" else 1)


def test_a_right_that_was_taken_away_counts_at_once() -> None:
    person = factories.person("ada", groups=["Admin"])
    client = signed_in(person)
    looked = previewed(client)
    person.groups.clear()
    assert press(client, looked, "activate", reason="Approvals.").status_code == 403
    assert in_force().number == 1


def test_only_visible_work_is_shown() -> None:
    ours = factories.workflow()
    factories.step(ours)
    factories.step(factories.workflow(team=factories.team("Legal")))
    limited = factories.person("ada", teams=[ours.team], permissions=["approvals.administer_policy"])
    looked = previewed(signed_in(limited), "rules: [{name: a, set: {step_up: true}}]")
    assert "<strong>1 in 1 workflow</strong>" in looked.text
    assert str(Workflow.objects.exclude(pk=ours.pk).get().pk) not in looked.text


def test_a_fragment_is_a_part_of_the_page(admin: Client) -> None:
    for page in ("/policies/", "/policies/1/", "/policies/activation/"):
        text = admin.get(page, headers=HTMX).text
        assert "<html" not in text
        assert "<h1>" in text
