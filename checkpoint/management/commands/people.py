"""`manage.py people`: accounts, their groups and teams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandParser

from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.identity import account_queries, accounts
from checkpoint.identity.accounts import Access, By


class Command(ClearCommand):
    """Every change is audited with its reason."""

    help = (
        "List people, create them, say which groups and teams they are in, disable and enable them. Exit codes: 0, 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        actions.add_parser("list", help="who there is")
        create = actions.add_parser("create", help="a new account; its password is printed once")
        change = actions.add_parser("set", help="groups and teams; what is not named stays")
        for action in (create, change):
            action.add_argument("name")
            action.add_argument("--groups", help="names, separated by commas; empty for none")
            action.add_argument("--teams", help="slugs, separated by commas; empty for none")
        for name, what in (("disable", "refuse them from their next request on"), ("enable", "let them in again")):
            actions.add_parser(name, help=what).add_argument("name")
        team = actions.add_parser("create-team", help="a new team")
        team.add_argument("slug")
        team.add_argument("title", help="the team's name")
        for action in actions.choices.values():
            action.add_argument("--reason", default="", help="why; needed for every change, kept in the audit")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        by = By(command_line.actor(user), user, options["reason"])
        actions: dict[str, Callable[[By, dict[str, Any]], str]] = {
            "list": self._list,
            "create": self._create,
            "create-team": self._create_team,
        }
        with command_line.clear_errors():
            said = actions.get(options["action"], self._change)(by, options)
        self.stdout.write(said)

    def _list(self, by: By, options: dict[str, Any]) -> str:
        lines, after = [], ""
        while True:
            found = account_queries.people(by.account, after=after)
            lines += [_line(account) for account in found.rows]
            if found.following is None:
                return "\n".join(lines)
            after = found.following

    def _create(self, by: By, options: dict[str, Any]) -> str:
        access = Access(active=True, groups=_words(options["groups"] or ""), teams=_words(options["teams"] or ""))
        account, password = accounts.create_account(by, options["name"], access)
        return f"Created {account.username}; password (shown only now): {password}"

    def _create_team(self, by: By, options: dict[str, Any]) -> str:
        return f"Created the team {accounts.create_team(by, options['slug'], options['title']).slug}."

    def _change(self, by: By, options: dict[str, Any]) -> str:
        account = account_queries.account_named(by.account, options["name"])
        present = accounts.access_of(account)
        changed = accounts.change_access(by, account.pk, _wanted(present, options), seen=present.seen)
        account = User.objects.get(pk=account.pk)
        return f"{'Changed' if changed else 'As it was'}: {_line(account)}"


def _wanted(present: Access, options: dict[str, Any]) -> Access:
    if options["action"] != "set":
        return Access(options["action"] == "enable", present.groups, present.teams)
    groups, teams = options["groups"], options["teams"]
    return Access(
        present.active,
        present.groups if groups is None else _words(groups),
        present.teams if teams is None else _words(teams),
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def _line(account: User) -> str:
    access = accounts.access_of(account)
    seen = f"{account.last_login:%Y-%m-%d %H:%M} UTC" if account.last_login else "never"
    state = "active" if access.active else "DISABLED"
    groups, teams = (", ".join(sorted(names)) or "-" for names in (access.groups, access.teams))
    superuser = "  superuser" if account.is_superuser else ""
    return f"{printable(account.username)}  {state}  groups: {groups}  teams: {teams}  signed in: {seen}{superuser}"
