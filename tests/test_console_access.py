"""Who gets what from the console: 404 for what one may not see, 403 for what one may see but not do (S16, S25)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import Decision
from checkpoint.models import AuditEntry, Case
from tests import factories
from tests.console_driver import HTMX, answer, answers, signed_in

pytestmark = pytest.mark.usefixtures("database")


def pages(case: Case) -> list[str]:
    """Every address of one workflow."""
    evidence = factories.evidence(case.step)
    return [
        f"/cases/{case.pk}/",
        f"/workflows/{case.workflow_id}/",
        f"/workflows/{case.workflow_id}/input.txt",
        f"/steps/{case.step_id}/arguments.txt",
        f"/evidence/{evidence.pk}/facts.txt",
    ]


# Who: group and whether of the case's team; then what the pages answer and what a decision answers.
MATRIX = [
    ("Operator", "own", 200, 302),
    ("Approver", "own", 200, 302),
    ("Auditor", "own", 200, 403),
    ("Admin", "own", 200, 403),
    ("Agent", "own", 200, 403),
    ("", "own", 200, 403),
    ("Operator", "other", 404, 404),
    ("Approver", "other", 404, 404),
    ("Auditor", "other", 200, 403),
    ("Admin", "other", 200, 403),
    ("Agent", "other", 404, 404),
    ("", "other", 404, 404),
]


@pytest.mark.parametrize(("group", "team", "seen", "decided"), MATRIX)
def test_seeing_and_deciding_are_different_rights(group: str, team: str, seen: int, decided: int) -> None:
    case = factories.case()
    joined = case.workflow.team if team == "own" else factories.team("Legal")
    client = signed_in(factories.person("ada", groups=[group] if group else [], teams=[joined]))
    assert [client.get(page).status_code for page in pages(case)] == [seen] * 5
    token = client.get("/review/").context["csrf_token"]
    sent = {
        "csrfmiddlewaretoken": str(token),
        "kind": "confirm",
        "reason": "I looked.",
        "step_version": case.step.version,
        "arguments_hash": case.step.arguments_hash,
    }
    assert client.post(f"/cases/{case.pk}/decision/", sent).status_code == decided
    assert Decision.objects.exists() == (decided == 302)


@pytest.mark.parametrize("group", ["Auditor", "Admin", "Agent"])
def test_who_may_not_decide_is_offered_nothing_and_told_who_may(group: str) -> None:
    case = factories.case()
    page = signed_in(factories.person("ada", groups=[group], teams=[case.workflow.team])).get(f"/cases/{case.pk}/")
    assert answers(page) == {}
    assert "You may look at this case but not decide it" in page.text


def test_a_refused_decision_is_recorded_as_a_denial() -> None:
    case = factories.case()
    approver = factories.person("ada", groups=["Approver"], teams=[case.workflow.team])
    client = signed_in(approver)
    form = answers(client.get(f"/cases/{case.pk}/"))["confirm"]
    approver.groups.clear()
    refused = client.post(form["action"], {**form["fields"], "kind": "confirm", "reason": "I looked."})
    assert refused.status_code == 403
    assert "You may see this, but you may not decide cases" in refused.text
    assert AuditEntry.objects.filter(actor="ada", verb="deny").count() == 1


@pytest.mark.parametrize("change", ["disabled", "left the team"])
def test_a_lost_right_counts_at_once(change: str) -> None:
    case = factories.case()
    approver = factories.person("ada", groups=["Approver"], teams=[case.workflow.team])
    client = signed_in(approver)
    form = answers(client.get(f"/cases/{case.pk}/"))["confirm"]
    if change == "disabled":
        User.objects.filter(pk=approver.pk).update(is_active=False)
    else:
        case.workflow.team.members.remove(approver)
    answered = client.post(form["action"], {**form["fields"], "kind": "confirm", "reason": "I looked."})
    assert answered.status_code == (302 if change == "disabled" else 404)
    assert not Decision.objects.exists()


def test_the_person_comes_from_the_session_and_never_from_the_form() -> None:
    case = factories.case()
    approver = factories.person("ada", groups=["Approver"], teams=[case.workflow.team])
    other = factories.person("grace", groups=["Approver"], teams=[case.workflow.team])
    forged: dict[str, object] = {"person": other.pk, "person_name": "grace", "user": other.pk, "channel": "api"}
    answer(signed_in(approver), case, "confirm", fields=forged)
    decision = Decision.objects.get()
    assert (decision.person, decision.person_name, decision.channel) == (approver, "ada", "console")


def test_everything_needs_an_account() -> None:
    case = factories.case()
    for page in ["/", "/review/", "/workflows/", *pages(case)]:
        answered = Client().get(page)
        assert (answered.status_code, answered["Location"]) == (302, f"/login/?next={page}")


def test_a_fragment_for_the_signed_out_is_a_notice_and_leaves_the_page_alone() -> None:
    answered = Client().get("/review/", headers={**HTMX, "HX-Current-URL": "http://testserver/review/?after=x"})
    assert (answered.status_code, answered["HX-Retarget"]) == (401, "#notice")
    assert "/login/?next=/review/%3Fafter%3Dx" in answered.text
    assert "<html" not in answered.text


def test_signing_in_and_out() -> None:
    case = factories.case()
    factories.person("ada", groups=["Approver"], teams=[case.workflow.team])
    client = Client()
    wrong = client.post("/login/", {"username": "ada", "password": "wrong"})
    assert "do not match an active account" in wrong.text
    right = client.post("/login/", {"username": "ada", "password": factories.PASSWORD, "next": f"/cases/{case.pk}/"})
    assert right["Location"] == f"/cases/{case.pk}/"
    assert client.get("/")["Location"] == "/review/"
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/review/").status_code == 302


def test_sign_in_does_not_lead_to_another_site() -> None:
    factories.person("ada")
    sent = {"username": "ada", "password": factories.PASSWORD, "next": "https://evil.example/"}
    assert Client().post("/login/", sent)["Location"] == "/"


def test_a_form_without_its_token_is_refused_with_a_way_on() -> None:
    case = factories.case()
    client = signed_in(factories.person("ada", groups=["Approver"], teams=[case.workflow.team]))
    refused = client.post(f"/cases/{case.pk}/decision/", {"kind": "confirm", "reason": "x"})
    assert refused.status_code == 403
    assert "Load the page again" in refused.text


def test_the_count_of_open_questions_is_that_of_ones_own() -> None:
    case = factories.case()
    factories.case(factories.step(factories.workflow(team=factories.team("Legal"))))
    client = signed_in(factories.person("ada", groups=["Approver"], teams=[case.workflow.team]))
    assert '<span class="count">1<span' in client.get("/workflows/").text


@pytest.mark.parametrize(
    "address", ["/nowhere/", "/cases/not-a-uuid/", "/workflows/00000000-0000-7000-8000-000000000000/"]
)
def test_an_unknown_address_says_so_and_shows_a_way_on(address: str) -> None:
    answered = signed_in(factories.person("ada")).get(address)
    assert answered.status_code == 404
    assert "Go to the review queue" in answered.text
