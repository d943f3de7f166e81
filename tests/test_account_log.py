"""What happens to accounts, groups and teams is in the system's audit stream, by whichever way it happens."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.test import Client

from checkpoint import audit, occasions
from checkpoint.models import Team
from checkpoint.people import ANONYMOUS, Actor
from tests import factories
from tests.audit_driver import said, system_entries
from tests.console_driver import signed_in

pytestmark = pytest.mark.usefixtures("database")

ADA = "person ada"
GRACE = Actor("grace", "console")


def test_signing_in_and_out_names_the_person_and_the_address() -> None:
    factories.person("ada")
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.post("/login/", {"username": "ada", "password": factories.PASSWORD})
    client.post("/logout/")
    assert said("sign_in", "sign_out") == [("ada", "sign_in", ADA, "", ""), ("ada", "sign_out", ADA, "", "")]
    assert [entry["details"] for entry in system_entries("sign_in")] == [{"address": "192.0.2.7"}]
    assert [entry["channel"] for entry in system_entries("sign_in")] == ["console"]


def test_signing_out_twice_says_nothing() -> None:
    Client().post("/logout/")
    assert said("sign_out") == []


@pytest.mark.parametrize("name", ["ada", "nobody", "eve\u202e", "x" * 10_000])
def test_a_failed_sign_in_is_a_denial_of_nobody_with_the_name_that_was_typed(name: str) -> None:
    factories.person("ada")
    Client().post("/login/", {"username": name, "password": "wrong"})
    (denial,) = system_entries("deny")
    assert (denial["actor"], denial["details"]["wanted"]) == (ANONYMOUS, "sign_in")
    assert denial["subject"] == f"person {name[:150]}"


def test_a_disabled_account_cannot_sign_in() -> None:
    User.objects.filter(pk=factories.person("ada").pk).update(is_active=False)
    Client().post("/login/", {"username": "ada", "password": factories.PASSWORD})
    assert [entry["subject"] for entry in system_entries("deny")] == [ADA]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"is_active": False}, ("disable", "active", "disabled")),
        ({"username": "countess"}, ("change", "username ada", "username countess")),
        ({"is_superuser": True}, ("change", "is_superuser False", "is_superuser True")),
    ],
)
def test_a_change_of_an_account_says_before_and_after(change: dict[str, object], expected: tuple[str, ...]) -> None:
    person = factories.person("ada")
    with occasions.acting(GRACE, reason="She asked for it."):
        for name, value in change.items():
            setattr(person, name, value)
        person.save()
    assert said(expected[0]) == [("grace", expected[0], f"person {person.username}", *expected[1:])]
    assert system_entries(expected[0])[0]["reason"] == "She asked for it."


def test_a_password_and_an_address_are_never_written_down() -> None:
    person = factories.person("ada")
    person.set_password("a new secret phrase")
    person.email = "ada@example.com"
    person.save()
    entries = system_entries("change")
    assert [entry["details"]["field"] for entry in entries] == ["password", "email"]
    assert not any("pbkdf2" in str(entry) or "example.com" in str(entry) for entry in entries)


def test_saving_without_a_change_says_nothing() -> None:
    person = factories.person("ada")
    before = len(system_entries())
    person.save()
    person.save(update_fields=["last_login"])
    assert len(system_entries()) == before


def test_groups_teams_and_permissions_are_noted_from_either_side_and_once() -> None:
    ada, legal, operators = factories.person("ada"), factories.team("Legal"), Group.objects.get(name="Operator")
    decide = Permission.objects.get(codename="decide_case")
    ada.groups.add(operators)
    ada.groups.add(operators)
    operators.user_set.remove(ada)
    operators.user_set.remove(ada)
    legal.members.add(ada)
    ada.teams.clear()
    ada.user_permissions.set([decide])
    operators.permissions.remove(decide)
    assert [entry[1:] for entry in said("grant", "revoke")] == [
        ("grant", ADA, "", "group Operator"),
        ("revoke", ADA, "group Operator", ""),
        ("grant", ADA, "", "team legal"),
        ("revoke", ADA, "team legal", ""),
        ("grant", ADA, "", "permission approvals.decide_case"),
        ("revoke", "group Operator", "permission approvals.decide_case", ""),
    ]


def test_new_and_deleted_things_are_noted() -> None:
    ada = factories.person("ada")
    User.objects.create_superuser("root")
    factories.team("Legal").delete()
    Group.objects.create(name="Night shift")
    ada.delete()
    assert [entry[1:] for entry in said("create", "delete")] == [
        ("create", ADA, "", ""),
        ("create", "person root", "", "superuser"),
        ("create", "team legal", "", ""),
        ("delete", "team legal", "", ""),
        ("create", "group Night shift", "", ""),
        ("delete", ADA, "", ""),
    ]


def test_a_change_that_is_rolled_back_leaves_no_entry() -> None:
    ada = factories.person("ada")
    before = len(system_entries())
    with transaction.atomic():
        ada.groups.add(Group.objects.get(name="Operator"))
        transaction.set_rollback(True)
    assert len(system_entries()) == before
    assert list(audit.broken_links()) == []


def test_outside_of_any_occasion_the_login_name_is_the_actor() -> None:
    Team.objects.create(slug="legal", name="Legal")
    (entry,) = system_entries("create")
    assert (entry["actor"], entry["channel"]) == (occasions.login_name(), "shell")
    assert "request" not in entry


def test_in_the_console_the_session_is_the_actor() -> None:
    client = signed_in(factories.person("ada"))
    client.get("/review/", headers={"X-Request-ID": "mine-1"})
    client.post("/login/", {"username": "eve", "password": "x"})
    assert {entry["actor"] for entry in system_entries("sign_in")} == {"ada"}
