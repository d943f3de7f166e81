"""The people of a first installation, so that a visitor can look at it as each kind of user."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.db import transaction

from checkpoint.models import Team

TEAM_SLUG = "default"
PEOPLE = (("olivia", "Operator"), ("adam", "Admin"), ("audrey", "Auditor"))


@dataclass(frozen=True)
class NewPerson:
    """Somebody who can log in now. The password is stored nowhere but as a hash."""

    username: str
    group: str
    password: str


@transaction.atomic
def create_demo_people() -> list[NewPerson]:
    """Creates the demo people in the team that migrations made; nobody where any user exists already."""
    if User.objects.exists():
        return []
    team = Team.objects.get(slug=TEAM_SLUG)
    people = [NewPerson(name, group, secrets.token_urlsafe(12)) for name, group in PEOPLE]
    for person in people:
        user = User.objects.create_user(person.username, password=person.password)
        user.groups.add(Group.objects.get(name=person.group))
        team.members.add(user)
    return people
