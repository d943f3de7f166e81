"""Administrators say who may do what: every change with a reason in the audit, in force from the next request on."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from checkpoint.errors import ActionIncomplete, Forbidden, NotFound, StaleView
from checkpoint.identity import account_queries, accounts
from checkpoint.identity.accounts import Access, By
from checkpoint.people import Actor
from tests import factories
from tests.audit_driver import said, system_entries
from tests.console_driver import HTMX, Forms, signed_in
from tests.test_commands import run

pytestmark = pytest.mark.usefixtures("database")

NOTHING = Access(active=True, groups=frozenset(), teams=frozenset())


def admin(name: str = "grace") -> User:
    """An administrator."""
    return factories.person(name, groups=["Admin"])


def by(account: User | None, reason: str = "She moved to billing.") -> By:
    """Who administers, and why."""
    return By(Actor(account.username if account else "root", "console"), account, reason)


def give(account: User, who: User | None, *, reason: str = "She moved to billing.", **changes: Any) -> bool:
    """Changes what an account may reach, having looked at it."""
    present = accounts.access_of(account)
    wanted = Access(**{"active": present.active, "groups": present.groups, "teams": present.teams, **changes})
    return accounts.change_access(by(who, reason), account.pk, wanted, seen=present.seen)


def test_a_change_is_made_and_every_part_of_it_audited_with_its_reason() -> None:
    grace, ada = admin(), factories.person("ada", groups=["Operator"], teams=[factories.team("Legal")])
    factories.team("Billing")
    before = len(system_entries())
    assert give(ada, grace, active=False, groups=frozenset({"Approver"}), teams=frozenset({"billing"}))
    changes = said()[before:]
    assert set(changes) == {
        ("grace", "disable", "person ada", "active", "disabled"),
        ("grace", "revoke", "person ada", "group Operator", ""),
        ("grace", "grant", "person ada", "", "group Approver"),
        ("grace", "revoke", "person ada", "team legal", ""),
        ("grace", "grant", "person ada", "", "team billing"),
    }
    assert {entry["reason"] for entry in system_entries()[before:]} == {"She moved to billing."}


def test_what_changes_nothing_says_nothing() -> None:
    grace, ada = admin(), factories.person("ada", groups=["Operator"])
    before = len(system_entries())
    assert not give(ada, grace)
    assert len(system_entries()) == before


def test_somebody_elses_change_meanwhile_is_not_overwritten() -> None:
    grace, ada = admin(), factories.person("ada")
    seen = accounts.access_of(ada).seen
    give(ada, grace, groups=frozenset({"Operator"}))
    with pytest.raises(StaleView):
        accounts.change_access(by(grace), ada.pk, Access(False, frozenset(), frozenset()), seen=seen)
    assert accounts.access_of(User.objects.get(pk=ada.pk)).groups == {"Operator"}


@pytest.mark.parametrize("reason", ["", "  ", "x" * 4001, "a\0b"])
def test_a_reason_is_needed(reason: str) -> None:
    grace, ada = admin(), factories.person("ada")
    with pytest.raises(ActionIncomplete, match="reason"):
        give(ada, grace, active=False, reason=reason)
    assert User.objects.get(pk=ada.pk).is_active


@pytest.mark.parametrize("change", [{"groups": frozenset({"Wizard"})}, {"teams": frozenset({"nowhere"})}])
def test_what_does_not_exist_cannot_be_given(change: dict[str, Any]) -> None:
    ada = factories.person("ada")
    with pytest.raises(ActionIncomplete, match=r"there is no (Wizard|nowhere); there are: "):
        give(ada, admin(), active=False, **change)
    assert User.objects.get(pk=ada.pk).is_active, "all of a change or none of it"


def test_nobody_changes_the_own_account_or_that_of_a_superuser() -> None:
    grace, root = admin(), User.objects.create_superuser("root")
    for account in (grace, root):
        with pytest.raises(Forbidden, match="Ask another"):
            give(account, grace, active=False)
    other = User.objects.create_superuser("other")
    assert give(root, other, active=False)
    assert [entry["actor"] for entry in system_entries("deny")] == ["grace", "grace"]


def test_an_account_that_does_not_exist() -> None:
    with pytest.raises(NotFound):
        accounts.change_access(by(admin()), 999_999, NOTHING, seen="")


@pytest.mark.parametrize("lost", ["disabled", "left the group"])
def test_a_lost_right_counts_at_once_even_for_the_object_at_hand(lost: str) -> None:
    grace, ada = admin(), factories.person("ada")
    assert grace.has_perm("checkpoint.administer_people"), "now it is cached on the object"
    if lost == "disabled":
        User.objects.filter(pk=grace.pk).update(is_active=False)
    else:
        User.objects.get(pk=grace.pk).groups.clear()
    with pytest.raises(Forbidden):
        give(ada, grace, active=False)
    assert [entry["actor"] for entry in system_entries("deny")] == ["grace"]


def test_of_two_administrators_who_disable_each_other_one_stays() -> None:
    pair = [admin("grace"), admin("heidi")]

    def one(who: User, whom: User) -> bool:
        try:
            return give(whom, who, active=False)
        except Forbidden:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(one, pair, reversed(pair)))
    assert sorted(done) == [False, True]
    assert User.objects.filter(is_active=True).count() == 1


@pytest.mark.parametrize("name", ["engine", "Workers", "", "ada", "(anonymous)", "a b", "x" * 151, "a\0"])
def test_names_that_cannot_be(name: str) -> None:
    factories.person("ada")
    with pytest.raises(ActionIncomplete, match="name"):
        accounts.create_account(by(admin()), name, NOTHING)
    assert User.objects.count() == 2


# --- the pages


def form_of(page: Any) -> dict[str, Any]:
    """The form that changes an account."""
    return next(form for form in Forms(page.text).forms if form["action"].endswith("/access/"))


def press(client: Any, account: User, *, headers: Any = None, **fields: Any) -> Any:
    """Opens an account's page, fills in its form and presses the button."""
    form = form_of(client.get(f"/people/{account.pk}/"))
    sent = {"csrfmiddlewaretoken": form["fields"]["csrfmiddlewaretoken"], "seen": form["fields"]["seen"]}
    return client.post(form["action"], {**sent, "reason": "Night shift.", **fields}, headers=headers)


def test_the_list_shows_groups_teams_and_states_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_queries, "PAGE_SIZE", 2)
    client = signed_in(admin())
    factories.person("ada", groups=["Operator"], teams=[factories.team("Legal")])
    User.objects.filter(pk=factories.person("zoe").pk).update(is_active=False)
    first = client.get("/people/")
    assert [name in first.text for name in ("ada", "Operator", "Legal", "grace", "zoe")] == [True] * 4 + [False]
    (following,) = re.findall(r'href="\?(after=[^"]+)"', first.text)
    second = client.get(f"/people/?{following}")
    assert ("zoe" in second.text, "disabled" in second.text) == (True, True)
    assert "Nobody is called so" in client.get("/people/", {"search": "nobody"}).text
    assert "<html" not in client.get("/people/", headers=HTMX).text


def test_the_form_works_without_javascript() -> None:
    client, ada = signed_in(admin()), factories.person("ada")
    team = factories.team("Legal")
    answered = press(client, ada, active="1", groups=["Operator", "Approver"], teams=[team.slug])
    assert (answered.status_code, answered["Location"]) == (302, f"/people/{ada.pk}/")
    access = accounts.access_of(User.objects.get(pk=ada.pk))
    assert access == Access(True, frozenset({"Operator", "Approver"}), frozenset({"legal"}))
    assert {(entry["actor"], entry["channel"]) for entry in system_entries("grant") if "ada" in entry["subject"]} == {
        ("grace", "console")
    }
    page = client.get(f"/people/{ada.pk}/")
    assert page.text.count(" checked") == 4


def test_with_htmx_the_answer_is_the_account_as_it_is_now() -> None:
    client, ada = signed_in(admin()), factories.person("ada", groups=["Operator"])
    answered = press(client, ada, headers=HTMX)
    assert (answered.status_code, "<html" in answered.text) == (200, False)
    assert "Changed. It counts from the next request" in answered.text
    assert accounts.access_of(User.objects.get(pk=ada.pk)) == Access(False, frozenset(), frozenset())


def test_a_refusal_keeps_what_was_chosen_and_typed() -> None:
    client, ada = signed_in(admin()), factories.person("ada", groups=["Operator"])
    answered = press(client, ada, reason=" ", active="1", groups=["Auditor"])
    assert answered.status_code == 422
    assert "say in a sentence why" in answered.text
    assert re.search(r'value="Auditor" checked', answered.text)
    assert accounts.access_of(ada).groups == {"Operator"}


@pytest.mark.parametrize("field", ["groups", "teams"])
def test_what_cannot_be_stored_is_refused_at_its_field(field: str) -> None:
    client, ada = signed_in(admin()), factories.person("ada")
    answered = press(client, ada, active="1", **{field: ["a\0"]})
    assert answered.status_code == 422
    assert f"{field}: holds a NUL" in answered.text


def test_a_form_that_is_out_of_date_shows_the_account_as_it_is() -> None:
    client, ada = signed_in(admin()), factories.person("ada")
    answered = press(client, ada, seen="0" * 64, active="1", groups=["Auditor"])
    assert answered.status_code == 409
    assert "Somebody else changed this account" in answered.text
    assert " checked" in answered.text
    assert not re.search(r'value="Auditor" checked', answered.text)


def test_one_sees_the_own_account_but_gets_no_form_for_it() -> None:
    grace = admin()
    client = signed_in(grace)
    page = client.get(f"/people/{grace.pk}/")
    assert "This is your own account" in page.text
    assert "/access/" not in page.text
    assert client.get(f"/people/{grace.pk}/access/")["Location"] == f"/people/{grace.pk}/"
    assert client.get("/people/999999/").status_code == 404


def test_a_session_that_goes_on_is_refused_at_its_next_request() -> None:
    """S25: signed in before, disabled or stripped of the group through the console, refused at the next press."""
    grace, case = signed_in(admin()), factories.case()
    for name in ("ada", "bob"):
        factories.person(name, groups=["Auditor"], teams=[case.workflow.team])
    ada, bob = User.objects.get(username="ada"), User.objects.get(username="bob")
    sessions = {person: signed_in(person) for person in (ada, bob)}
    assert [sessions[person].get("/audit/").status_code for person in (ada, bob)] == [200, 200]
    press(grace, ada)
    press(grace, bob, active="1", teams=[case.workflow.team.slug])
    assert [sessions[person].get("/audit/").status_code for person in (ada, bob)] == [302, 403]


# --- the command line


def test_people_are_created_changed_and_listed_from_the_command_line() -> None:
    why = ("--reason", "New on the night shift.")
    assert run("people", "create-team", "billing", "Billing", *why).code == 0
    created = run("people", "create", "bob", "--groups", "Operator, Agent", "--teams", "billing", *why)
    assert created.code == 0
    bob = User.objects.get(username="bob")
    assert bob.check_password(created.out.split()[-1])
    assert run("people", "set", "bob", "--groups", "Approver", *why).code == 0
    assert accounts.access_of(bob) == Access(True, frozenset({"Approver"}), frozenset({"billing"}))
    assert "Changed: bob  DISABLED" in run("people", "disable", "bob", *why).out
    assert "As it was" in run("people", "disable", "bob", *why).out
    assert "groups: Approver  teams: billing  signed in: never" in run("people", "list").out
    assert run("people", "enable", "bob", *why).code == 0
    assert {entry["reason"] for entry in system_entries("grant", "disable", "create")} == {"New on the night shift."}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["disable", "ada"], "reason: say in a sentence why"),
        (["disable", "nobody", "--reason", "x"], "There is no account 'nobody'"),
        (["create", "ada", "--reason", "x"], "already exists"),
        (["set", "ada", "--groups", "Wizard", "--reason", "x"], "there is no Wizard"),
        (["create-team", "a b", "A", "--reason", "x"], "team: Enter a valid"),
        (["create-team", "default", "A", "--reason", "x"], "already exists"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(arguments: list[str], words: str) -> None:
    factories.person("ada")
    ended = run("people", *arguments)
    assert (ended.code, len(ended.err.splitlines())) == (1, 1), ended.err
    assert words in ended.err


def test_as_somebody_the_command_needs_that_persons_right() -> None:
    factories.person("ada", groups=["Operator"])
    factories.person("bob")
    ended = run("people", "--as", "ada", "disable", "bob", "--reason", "x")
    assert (ended.code, "You may not administer people" in ended.err) == (1, True)
    assert User.objects.get(username="bob").is_active
    (denial,) = system_entries("deny")
    assert (denial["actor"], denial["channel"]) == ("ada", "command")
