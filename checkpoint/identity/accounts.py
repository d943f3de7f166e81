"""Accounts: who may sign in, in which groups and teams. Verbs of administrators, one transaction each.

What they change is written to the audit by `account_log`, with the reason that is demanded here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db.models import Model, QuerySet

from checkpoint import occasions, reasons
from checkpoint.canonical import canonical, sha256_hex, string_problem
from checkpoint.errors import ActionIncomplete, Forbidden, NotFound, StaleView
from checkpoint.models import Team
from checkpoint.people import ENGINE, Actor
from checkpoint.permissions import ADMINISTER_PEOPLE, admit
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction

REASON_LIMIT = 4000
RESERVED = {ENGINE.name, "workers"}  # the engine's parts act under these


@dataclass(frozen=True)
class Access:
    """What an account may reach.

    Attributes:
        groups: names.
        teams: slugs.
    """

    active: bool
    groups: frozenset[str]
    teams: frozenset[str]

    @property
    def seen(self) -> str:
        """Names exactly this; a change says what its author saw."""
        return sha256_hex(canonical([self.active, sorted(self.groups), sorted(self.teams)]))


@dataclass(frozen=True)
class By:
    """Who administers.

    Attributes:
        actor: who is named in the audit.
        account: whose right it is; None for whoever runs a command on this machine without an account.
        reason: why, in their words.
    """

    actor: Actor
    account: User | None
    reason: str


def _verb[**P, R](verb: Callable[Concatenate[By, P], R]) -> Callable[Concatenate[By, P], R]:
    """Marks a verb: one transaction, the reason on every entry, and a refusal written down."""
    once = one_transaction(verb)

    @wraps(verb)
    def run(by: By, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            administrator_of(by)
            with occasions.acting(by.actor, reason=_checked(by.reason)):
                return once(by, *args, **kwargs)
        except (Forbidden, NotFound) as refusal:
            wanted = verb.__name__.replace("_", " ")
            denials.record(actor=by.actor, verb=wanted, subject="people", reason=str(refusal))
            raise

    return run


@_verb
def change_access(by: By, account_id: int, wanted: Access, *, seen: str) -> bool:
    """Gives an account exactly this access; returns whether that changed anything.

    Args:
        seen: `Access.seen` of what the administrator looked at.

    Raises:
        Forbidden: no right, one's own account, or a superuser's.
        NotFound: no such account.
        StaleView: somebody else changed it meanwhile.
        ActionIncomplete: no reason, or a group or team that does not exist.
    """
    account = _locked(by, account_id)
    present = access_of(account)
    if present == wanted:
        return False
    if present.seen != seen:
        raise StaleView(
            "Somebody else changed this account since you looked. Load it again and decide on what it shows."
        )
    groups = _named(Group.objects.all(), "name", wanted.groups, "groups")
    teams = _named(Team.objects.all(), "slug", wanted.teams, "teams")
    if account.is_active != wanted.active:
        account.is_active = wanted.active
        account.save(update_fields=["is_active"])
    account.groups.set(groups)
    account.teams.set(teams)
    return True


@_verb
def create_account(by: By, name: str, access: Access) -> tuple[User, str]:
    """A new account and its password, which is kept nowhere but as a hash.

    Raises Forbidden, ActionIncomplete (the name is taken or not allowed, or a group or team does not exist).
    """
    administrator_of(by)
    if name.lower() in RESERVED:
        raise ActionIncomplete("name", f"{name!r} is what a part of the engine is called; choose another one.")
    account, password = User(username=name, is_active=access.active), secrets.token_urlsafe(12)
    account.set_password(password)
    try:
        account.full_clean()
    except ValidationError as error:
        raise ActionIncomplete("name", " ".join(error.messages)) from None
    account.save()
    account.groups.set(_named(Group.objects.all(), "name", access.groups, "groups"))
    account.teams.set(_named(Team.objects.all(), "slug", access.teams, "teams"))
    return account, password


@_verb
def create_team(by: By, slug: str, name: str) -> Team:
    """A new team. Raises Forbidden, ActionIncomplete."""
    administrator_of(by)
    team = Team(slug=slug, name=name.strip())
    try:
        validate_slug(slug)
        team.full_clean()
    except ValidationError as error:
        raise ActionIncomplete("team", " ".join(error.messages)) from None
    team.save()
    return team


def access_of(account: User) -> Access:
    """What an account may reach now."""
    return Access(
        active=account.is_active,
        groups=frozenset(group.name for group in account.groups.all()),
        teams=frozenset(team.slug for team in account.teams.all()),
    )


def _locked(by: By, account_id: int) -> User:
    """The account under its lock. Of two administrators who disable each other the second one waits and is refused."""
    ids = [account_id, *([by.account.pk] if by.account else [])]
    rows = {user.pk: user for user in User.objects.select_for_update().filter(pk__in=ids).order_by("pk")}
    administrator = administrator_of(by)
    if account_id not in rows:
        raise NotFound(f"There is no account {account_id}.")
    if administrator is not None and account_id == administrator.pk:
        raise Forbidden("You may not change your own account. Ask another administrator.")
    if administrator is not None and rows[account_id].is_superuser and not administrator.is_superuser:
        raise Forbidden("You may not change the account of a superuser. Ask another superuser.")
    return rows[account_id]


def administrator_of(by: By) -> User | None:
    """The administrator as stored now: an account that was disabled or lost the right counts at once (S25)."""
    administrator = User.objects.get(pk=by.account.pk) if by.account else None
    admit(administrator, ADMINISTER_PEOPLE, action="administer people")
    return administrator


def _named[M: Model](things: QuerySet[M], field: str, names: Collection[str], what: str) -> list[M]:
    for problem in filter(None, map(string_problem, names)):
        raise ActionIncomplete(what, f"{problem}.")
    found = list(things.filter(**{f"{field}__in": names}))
    if unknown := sorted(set(names) - {getattr(thing, field) for thing in found}):
        known = ", ".join(things.order_by(field).values_list(field, flat=True)[:20])
        raise ActionIncomplete(what, f"there is no {', '.join(unknown)}; there are: {known}.")
    return found


def _checked(reason: str) -> str:
    text = reason.strip()
    wanted = "say in a sentence why; it is kept in the audit trail."
    if found := reasons.problem(text, wanted=wanted, limit=REASON_LIMIT):
        raise ActionIncomplete("reason", found)
    return text
