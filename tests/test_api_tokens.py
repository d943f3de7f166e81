"""Tokens: scoped, hashed, ending, and worth no more than their account."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from checkpoint.errors import ActionIncomplete, Forbidden, NotFound
from checkpoint.identity import accounts, tokens
from checkpoint.identity.accounts import By
from checkpoint.models import ApiToken
from checkpoint.people import Actor
from tests import factories
from tests.api_driver import ALL, BY, Api, token_of
from tests.audit_driver import said, system_entries
from tests.test_commands import run
from tests.time_driver import MovableTime, time_machine

__all__ = ["time_machine"]

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def bot() -> User:
    """An agent's account."""
    return factories.person("bot", groups=["Agent"], teams=[factories.team("Billing")])


def test_only_a_hash_is_kept(bot: User) -> None:
    text = token_of(bot)
    row = ApiToken.objects.values().get()
    assert text not in str(row)
    assert text.startswith(row["beginning"])


def test_who_calls_is_the_tokens_account(bot: User) -> None:
    answered = Api(token_of(bot, ["read"])).get("")
    assert answered.status_code == 200
    assert (answered.json()["account"], answered.json()["teams"]) == ("bot", ["billing"])
    assert answered.json()["scopes"] == ["read"]


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer a b", "Basic YTpi", "Bearer cp_unknown", "Bearer ü"])
def test_without_a_token_nobody_is_let_in(bot: User, header: str) -> None:
    api = Api(None)
    answered = api.get("", Authorization=header) if header else api.get("")
    assert answered.status_code == 401
    assert answered["WWW-Authenticate"].startswith("Bearer")
    assert answered["Content-Type"] == "application/problem+json"


def test_a_signed_in_browser_is_nobody_here(bot: User) -> None:
    api = Api(None)
    api.client.force_login(bot)
    assert api.get("").status_code == 401


def test_a_token_ends(bot: User, time_machine: MovableTime) -> None:
    api = Api(token_of(bot, days=1))
    time_machine.pass_seconds(86_401)
    answered = api.get("")
    assert answered.status_code == 401
    assert "expired" in answered.json()["detail"]


def test_s25_a_revoked_token_and_a_disabled_account_are_refused_at_once(bot: User) -> None:
    first, second = Api.of(bot), Api.of(bot)
    tokens.revoke(BY, ApiToken.objects.order_by("id")[0].pk)
    assert (first.get("").status_code, second.get("").status_code) == (401, 200)
    access = accounts.access_of(bot)
    accounts.change_access(BY, bot.pk, accounts.Access(False, access.groups, access.teams), seen=access.seen)
    assert second.get("").status_code == 401


def test_a_scope_narrows(bot: User) -> None:
    answered = Api.of(bot, ["submit"]).get("workflows/")
    assert answered.status_code == 403
    assert "“read”" in answered.json()["detail"]


def test_last_use_is_shown_to_the_minute(bot: User, time_machine: MovableTime) -> None:
    api = Api.of(bot)
    assert ApiToken.objects.get().used_at is None
    api.get("")
    first = ApiToken.objects.get().used_at
    api.get("")
    assert ApiToken.objects.get().used_at == first
    time_machine.pass_seconds(120)
    api.get("")
    assert ApiToken.objects.get().used_at != first


def test_issuing_and_revoking_are_in_the_audit(bot: User) -> None:
    before = len(system_entries())
    token, _ = tokens.issue(BY, bot, name="ci", scopes=["read"], lifetime=timedelta(days=1))
    tokens.revoke(BY, token.pk)
    tokens.revoke(BY, token.pk)
    subject = f"token {token.beginning}… of person bot"
    assert [(verb, about) for _, verb, about, _, _ in said()[before:]] == [("issue", subject), ("revoke", subject)]
    assert {entry["reason"] for entry in system_entries()[before:]} == {"For a test."}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": " "},
        {"name": "x" * 101},
        {"scopes": []},
        {"scopes": ["read", "everything"]},
        {"lifetime": timedelta(0)},
        {"lifetime": timedelta(days=367)},
    ],
)
def test_what_cannot_be_issued(bot: User, wrong: dict[str, Any]) -> None:
    wanted: dict[str, Any] = {"name": "ci", "scopes": ALL, "lifetime": timedelta(days=1), **wrong}
    with pytest.raises(ActionIncomplete):
        tokens.issue(BY, bot, **wanted)
    with pytest.raises(ActionIncomplete):
        tokens.issue(By(BY.actor, None, " "), bot, name="ci", scopes=ALL, lifetime=timedelta(days=1))


def test_only_who_administers_people_issues_and_sees_them(bot: User) -> None:
    by = By(Actor("bot", "console"), bot, "I want one.")
    with pytest.raises(Forbidden):
        tokens.issue(by, bot, name="ci", scopes=ALL, lifetime=timedelta(days=1))
    with pytest.raises(Forbidden):
        tokens.tokens(bot)
    with pytest.raises(NotFound):
        tokens.revoke(BY, factories.workflow().pk)


def test_the_command_prints_a_token_once(bot: User) -> None:
    issued = run("token", "issue", "bot", "nightly run", "--scopes", "read", "--reason", "For the nightly run.")
    assert issued.code == 0
    assert Api(issued.out.strip()).get("").status_code == 200
    listed = run("token", "list")
    assert issued.out.strip() not in listed.out
    assert "bot: nightly run  scopes: read" in listed.out
    revoked = run("token", "revoke", str(ApiToken.objects.get().pk), "--reason", "It leaked.")
    assert "REVOKED" in revoked.out
    assert run("token", "issue", "nobody", "x", "--reason", "y").code == 1
