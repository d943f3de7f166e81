"""Every refused change is in the audit exactly once, with who, what and in answer to which request."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from approvals.decisions import decide
from checkpoint import occasions
from checkpoint.errors import NotFound
from checkpoint.models import Case
from checkpoint.people import ANONYMOUS, Actor
from checkpoint.states import Decision
from checkpoint.trail import denials
from tests import factories
from tests.audit_driver import system_entries
from tests.console_driver import HTMX, signed_in
from tests.test_commands import run

pytestmark = pytest.mark.usefixtures("database")


def post(client: Client, case: Case, **headers: str) -> int:
    """Tries to decide; the form's token comes from a page that everybody may see."""
    page = client.get("/login/" if not client.session.get("_auth_user_id") else "/review/")
    sent = {"csrfmiddlewaretoken": str(page.context["csrf_token"]), "kind": "confirm", "reason": "I looked."}
    sent |= {"step_version": str(case.step.version), "arguments_hash": case.step.arguments_hash}
    return client.post(f"/cases/{case.pk}/decision/", sent, headers=headers).status_code


def addresses() -> dict[str, str]:
    """Every address of the installation by its name, filled with ids that nothing has."""
    found: dict[str, str] = {}
    for one in get_resolver().url_patterns:
        space = f"{one.namespace}:" if isinstance(one, URLResolver) and one.namespace else ""
        for pattern in getattr(one, "url_patterns", [one]):
            if pattern.name is None:  # where every address under /api/ that does not exist ends
                continue
            filling = {name: UNKNOWN[type(kind).__name__] for name, kind in pattern.pattern.converters.items()}
            found[space + pattern.name] = reverse(space + pattern.name, kwargs=filling)
    return found


REFUSED = {401, 403, 404}
UNKNOWN: dict[str, Any] = {"UUIDConverter": UUID(int=7), "IntConverter": 999_999, "StringConverter": "x"}


def test_every_address_records_a_refused_change_once_whichever_part_refuses() -> None:
    """For those that are added later too: somebody without any right tries to change something everywhere."""
    client = signed_in(factories.person("eve"))
    token = str(client.get("/review/").context["csrf_token"])
    refused = []
    for name, address in addresses().items():
        before = len(system_entries("deny"))
        status = client.post(
            address, {"csrfmiddlewaretoken": token, "kind": "confirm", "reason": "I want it."}
        ).status_code
        assert len(system_entries("deny")) - before == (status in REFUSED), f"{name} answered {status}"
        refused += [name] if status in REFUSED else []
        if name == "logout":
            client.force_login(User.objects.get(username="eve"))
            token = str(client.get("/review/").context["csrf_token"])
    assert {"decision", "person_access", "api:workflows", "approvals-api:case-decision"} <= set(refused)


@pytest.mark.parametrize(("team", "status"), [("own", 403), ("other", 404)])
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_refused_decision_is_recorded_once(team: str, status: int, headers: dict[str, str]) -> None:
    case = factories.case()
    joined = case.workflow.team if team == "own" else factories.team("Legal")
    client = signed_in(factories.person("ada", groups=["Agent"], teams=[joined]))
    assert post(client, case, **headers, **{"X-Request-ID": "abc"}) == status
    (denial,) = system_entries("deny")
    assert (denial["actor"], denial["channel"], denial["request"]) == ("ada", "console", "abc")
    assert denial["details"]["wanted"] == "decide confirm"
    assert denial["subject"] == f"case {case.pk}"
    assert "you may" in denial["reason"].lower()


@pytest.mark.parametrize(("headers", "status"), [({}, 302), (HTMX, 401)])
def test_nobody_signed_in_is_refused_and_recorded(headers: dict[str, str], status: int) -> None:
    case = factories.case()
    assert post(Client(), case, **headers) == status
    (denial,) = system_entries("deny")
    assert (denial["actor"], denial["details"]["wanted"]) == (ANONYMOUS, "decision")
    assert denial["subject"] == f"/cases/{case.pk}/decision/"


def test_a_form_without_its_token_is_recorded() -> None:
    case = factories.case()
    client = signed_in(factories.person("ada", groups=["Approver"], teams=[case.workflow.team]))
    client.post(f"/cases/{case.pk}/decision/", {"kind": "confirm"})
    (denial,) = system_entries("deny")
    assert "from an earlier session" in denial["reason"]


def test_reading_and_mistyped_addresses_are_not() -> None:
    case = factories.case()
    client = signed_in(factories.person("ada"))
    assert client.get(f"/cases/{case.pk}/").status_code == 404
    assert client.post("/nowhere/").status_code == 404
    assert system_entries("deny") == []


def test_a_verb_called_by_no_edge_records_it_too() -> None:
    case, eve = factories.case(), factories.person("eve", groups=["Approver"])
    with pytest.raises(NotFound):
        decide(
            case_id=case.pk,
            kind=Decision.CONFIRM,
            person=eve,
            channel="mail",
            reason="I looked.",
            step_version=case.step.version,
            arguments_hash=case.step.arguments_hash,
        )
    assert [(entry["actor"], entry["channel"]) for entry in system_entries("deny")] == [("eve", "mail")]


@pytest.mark.parametrize(
    ("command", "who", "actor"),
    [
        (["decide", "{case}", "confirm", "--reason", "x", "--as", "ada"], "Agent", "ada"),
        (["decide", "{case}", "confirm", "--reason", "x", "--as", "ada"], "", "ada"),
        (["decide", "{case}", "confirm", "--reason", "x", "--as", "nobody"], "Approver", occasions.login_name()),
        (["explain", "{case}", "--as", "ada"], "", "ada"),
    ],
)
def test_a_refused_command_is_recorded_once(command: list[str], who: str, actor: str) -> None:
    case = factories.case()
    factories.person("ada", groups=[who], teams=[case.workflow.team] if who else [])
    assert run(*(word.format(case=case.pk) for word in command)).code == 1
    (denial,) = system_entries("deny")
    assert (denial["actor"], denial["channel"]) == (actor, "command")
    assert len(denial["request"]) == 16


def test_a_mistyped_id_without_an_account_is_no_denial() -> None:
    assert run("explain", "0" * 32).code == 1
    assert system_entries("deny") == []


def test_those_without_an_account_cannot_fill_the_table() -> None:
    for _ in range(denials.ANONYMOUS_PER_MINUTE + 5):
        denials.record(actor=Actor(ANONYMOUS, "console"), verb="sign_in", subject="person x", reason="wrong")
    denials.record(actor=Actor("ada", "console"), verb="decide", subject="case 1", reason="no right")
    entries = system_entries("deny")
    assert len(entries) == denials.ANONYMOUS_PER_MINUTE + 1
    assert ["further" in entry["details"] for entry in entries[-3:]] == [False, True, False]


@pytest.mark.parametrize(
    ("given", "taken"),
    [("deploy-7:a.b_c", True), ("x" * 64, True), ("x" * 65, False), ("a b", False), ("", False), ("é", False)],
)
def test_a_request_id_is_taken_where_it_is_short_and_harmless(given: str, taken: bool) -> None:
    answered = Client().get("/login/", headers={"X-Request-ID": given})
    assert (answered["X-Request-ID"] == given) is taken
    assert re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", answered["X-Request-ID"])


def test_each_request_has_an_id_of_its_own() -> None:
    case = factories.case()
    client = signed_in(factories.person("ada", groups=["Agent"], teams=[case.workflow.team]))
    assert [post(client, case), post(client, case)] == [403, 403]
    first, second = (entry["request"] for entry in system_entries("deny"))
    assert first != second
