"""Who reaches what: one table of roles, teams and actions, held against every channel (S14, S16, S25).

You cannot act on what you cannot see (404); seeing without the right is 403. Refusal and success share one set-up. What
was refused has changed nothing, and is in the audit once; what was allowed was done by the person of the session.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import decisions
from approvals.models import Decision
from checkpoint.errors import Forbidden
from checkpoint.identity import accounts
from checkpoint.people import Actor
from tests import factories
from tests.audit_driver import system_entries
from tests.reach_driver import Answer, Bulk, CommandLine, Fragment, Page, Program, World, record

pytestmark = pytest.mark.usefixtures("database")

CHANNELS: dict[str, type[Any]] = {
    "page": Page,
    "fragment": Fragment,
    "bulk": Bulk,
    "command": CommandLine,
    "api": Program,
}

ROLES = ("anonymous", "Operator", "Approver", "Auditor", "Admin", "Agent", "disabled", "none")
_LETTERS = {"+": Answer.DONE, "4": Answer.ABSENT, "3": Answer.REFUSED, "?": Answer.STRANGER}

# For each action and team, in the order of ROLES: + done, 4 there is no such thing, 3 not allowed, ? sign in first.
TABLE = """
view_workflow      own    ? + + + + + ? +
view_workflow      other  ? 4 4 + + 4 ? 4
view_case          own    ? + + + + + ? +
view_case          other  ? 4 4 + + 4 ? 4
decide_case        own    ? + + 3 3 3 ? 3
decide_case        other  ? 4 4 3 3 4 ? 4
view_audit         own    ? 3 3 + + 3 ? 3
view_audit         other  ? 3 3 + + 3 ? 3
administer_people  own    ? 3 3 3 + 3 ? 3
administer_people  other  ? 3 3 3 + 3 ? 3
"""
CHANGES = {"decide_case", "administer_people"}


def expected(role: str, team: str) -> dict[str, Answer]:
    """What the table says for one person, by action."""
    rows = [line.split() for line in TABLE.strip().splitlines()]
    return {action: _LETTERS[letters[ROLES.index(role)]] for action, whose, *letters in rows if whose == team}


def world() -> World:
    """A case of the team Billing, and an account that can be administered."""
    factories.person("grace", groups=["Approver", "Admin"], teams=[factories.team("Billing")])
    return World(factories.case(), factories.person("bob"))


def somebody(role: str, team: str) -> User | None:
    """A person of that role in the case's own team or in another one."""
    if role == "anonymous":
        return None
    groups = {"disabled": ["Approver", "Admin", "Auditor"], "none": []}.get(role, [role])
    return factories.person("ada", groups=groups, teams=[factories.team("Billing" if team == "own" else "Legal")])


@pytest.mark.parametrize("team", ["own", "other"])
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("channel", CHANNELS)
def test_everybody_reaches_what_the_table_says_by_every_channel(
    channel: str, role: str, team: str, subtests: pytest.Subtests
) -> None:
    about, person = world(), somebody(role, team)
    way = CHANNELS[channel](person)
    if role == "disabled":
        User.objects.filter(username="ada").update(is_active=False)
    for action, answer in expected(role, team).items():
        if hasattr(way, action):
            with subtests.test(action):
                check(way, action, about, answer)


def check(way: Any, action: str, about: World, answer: Answer) -> None:
    """Does it, and looks what came of it."""
    before, denials = record(), len(system_entries("deny"))
    assert getattr(way, action)(about) is answer
    changed, denied = record() != before, len(system_entries("deny")) - denials
    is_change = action in CHANGES
    assert changed is (is_change and answer is Answer.DONE)
    assert denied == (answer is not Answer.DONE and (is_change or way.writes_down_reads))
    if action == "decide_case" and answer is Answer.DONE:
        assert Decision.objects.get().person_name == "ada", "whatever the body said (S14)"
    if action == "administer_people" and answer is Answer.DONE:
        assert [entry["actor"] for entry in system_entries("grant")][-1] == "ada"


def test_the_table_is_whole() -> None:
    for role in ROLES:
        own, other = expected(role, "own"), expected(role, "other")
        assert own.keys() == other.keys()
        assert set(own) <= set(dir(Page)), "the page has every action"


@pytest.mark.parametrize("channel", CHANNELS)
def test_every_channel_decides_by_the_same_function(channel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    about, person = world(), somebody("Approver", "own")
    asked: list[str] = []

    def refuse(given: Any, *further: Any) -> Any:
        asked.append(given.person.username)
        raise Forbidden("You may not, says the one function.")

    monkeypatch.setattr(decisions, "_decide", refuse)
    assert CHANNELS[channel](person).decide_case(about) is Answer.REFUSED
    assert asked == ["ada"]
    assert [entry["reason"] for entry in system_entries("deny")] == ["You may not, says the one function."]


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(
    ("loss", "answer"), [("disabled", Answer.STRANGER), ("group", Answer.REFUSED), ("team", Answer.ABSENT)]
)
def test_what_was_taken_away_counts_at_the_next_request(channel: str, loss: str, answer: Answer) -> None:
    about, person = world(), somebody("Approver", "own")
    assert person is not None
    way = CHANNELS[channel](person)
    assert way.view_workflow(about) is Answer.DONE, "the session goes on"
    access = accounts.access_of(person)
    left = {
        "disabled": accounts.Access(active=False, groups=access.groups, teams=access.teams),
        "group": accounts.Access(active=True, groups=frozenset(), teams=access.teams),
        "team": accounts.Access(active=True, groups=access.groups, teams=frozenset()),
    }[loss]
    root = accounts.By(Actor("root", "command"), None, "She left.")
    accounts.change_access(root, person.pk, left, seen=access.seen)
    before = record()
    assert way.decide_case(about) is answer
    assert record() == before
    assert len(system_entries("deny")) == 1
