"""Reads for administrators of people: bounded, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from checkpoint.errors import NotFound
from checkpoint.models import Team
from checkpoint.permissions import ADMINISTER_PEOPLE, Person, admit

PAGE_SIZE = 50


@dataclass(frozen=True)
class People:
    """Some accounts by name, and the name behind which the next ones begin; None on the last page."""

    rows: Sequence[User]
    following: str | None


def people(person: Person | None, *, search: str = "", after: str = "") -> People:
    """Accounts whose names hold `search`, behind the name `after`, with groups and teams. Raises Forbidden."""
    admit(person, ADMINISTER_PEOPLE, action="administer people")
    found = _accounts().filter(username__gt=after).order_by("username")
    if search:
        found = found.filter(username__icontains=search)
    rows = list(found[: PAGE_SIZE + 1])
    more = len(rows) > PAGE_SIZE
    return People(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].username if more else None)


def account(person: Person | None, account_id: int) -> User:
    """One account. Raises Forbidden, NotFound."""
    admit(person, ADMINISTER_PEOPLE, action="administer people")
    found = _accounts().filter(pk=account_id).first()
    if found is None:
        raise NotFound(f"There is no account {account_id}.")
    return found


def account_named(person: Person | None, name: str) -> User:
    """One account by its name. Raises Forbidden, NotFound."""
    admit(person, ADMINISTER_PEOPLE, action="administer people")
    found = _accounts().filter(username=name).first()
    if found is None:
        raise NotFound(f"There is no account {name!r}; `manage.py people list` names them.")
    return found


def _accounts() -> QuerySet[User]:
    return User.objects.prefetch_related("groups", "teams")


def choices() -> tuple[list[Group], list[Team]]:
    """Every group and team, by name."""
    return list(Group.objects.order_by("name")), list(Team.objects.order_by("name"))
