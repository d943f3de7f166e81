"""`manage.py token`: what programs show to the API."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser

from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.identity import account_queries, tokens
from checkpoint.identity.accounts import By
from checkpoint.models import ApiToken, Scope

LISTED = 200


class Command(ClearCommand):
    """A token's text is printed once, when it is issued. Every change is audited with its reason."""

    help = "Issue, list and revoke tokens for the API. Exit codes: 0, 1."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        actions.add_parser("list", help="which there are, and when each was last used")
        issue = actions.add_parser("issue", help="a new token of an account; it is printed once")
        issue.add_argument("account")
        issue.add_argument("name", help="what will use it")
        issue.add_argument("--scopes", default="read,submit", help=f"of {', '.join(Scope.values)}; read,submit")
        issue.add_argument("--days", type=_days, default=90.0, help="after which it ends; 90")
        revoke = actions.add_parser("revoke", help="end one at once")
        revoke.add_argument("id", type=_id)
        for action in (issue, revoke):
            action.add_argument("--reason", default="", help="why; needed, kept in the audit")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        by = By(command_line.actor(user), user, options.get("reason", ""))
        with command_line.clear_errors():
            match options["action"]:
                case "list":
                    lines = [_line(token) for token in tokens.tokens(user)[:LISTED]]
                    self.stdout.write("\n".join(lines) or "There are no tokens.")
                case "issue":
                    self._issue(by, options)
                case "revoke":
                    self.stdout.write(f"Revoked: {_line(tokens.revoke(by, options['id']))}")

    def _issue(self, by: By, options: dict[str, Any]) -> None:
        """The token alone on standard output, so that a script can take it."""
        account = account_queries.account_named(by.account, options["account"])
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        lifetime = timedelta(days=options["days"])
        token, text = tokens.issue(by, account, name=options["name"], scopes=scopes, lifetime=lifetime)
        self.stderr.write(f"Issued (the token itself is shown only now): {_line(token)}")
        self.stdout.write(text)


def _days(text: str) -> float:
    longest = tokens.LONGEST_LIFETIME.days
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 < days <= longest:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days above 0 and up to {longest}")
    return days


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no token's id; `manage.py token list` has them") from None


def _line(token: ApiToken) -> str:
    used = f"{token.used_at:%Y-%m-%d %H:%M} UTC" if token.used_at else "never"
    until = f"until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    end = f"REVOKED {token.revoked_at:%Y-%m-%d %H:%M} UTC" if token.revoked_at else until
    name = f"{printable(token.account.get_username())}: {printable(token.name)}"
    return f"{token.pk}  {token.beginning}…  {name}  scopes: {','.join(token.scopes)}  {end}  used: {used}"
