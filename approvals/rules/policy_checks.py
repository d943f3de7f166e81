"""What only the database knows of a policy: groups, teams and tools that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from django.contrib.auth.models import Group, User

from approvals.policies import PolicyDocument, PolicyRule
from checkpoint.canonical import escape
from checkpoint.errors import Fault
from checkpoint.explaining.wording import nearest
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Team, ToolVersion

_NAMES_GROUPS = ("groups", "escalate_to")


def group_faults(stored: Any) -> list[Fault]:
    """A fault for every group that a policy names and that does not exist: nobody could ever answer."""
    named = list(_named_groups(stored, ""))
    known = set(Group.objects.values_list("name", flat=True))
    return [
        Fault(place, f"there is no group of this name{nearest(name, known) or f'; known: {", ".join(sorted(known))}'}")
        for place, name in named
        if name not in known
    ]


def _named_groups(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every group that is named anywhere, with its place."""
    members: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for name, member in members:
        place = f"{path}/{escape(name)}"
        if name in _NAMES_GROUPS:
            yield from ((f"{place}/{index}", group) for index, group in enumerate(member))
        else:
            yield from _named_groups(member, place)


def warnings(document: PolicyDocument) -> list[str]:
    """What is allowed but probably not meant: rules that match nothing, more approvers than there are people."""
    tools = set(ToolVersion.objects.values_list("name", flat=True))
    teams = set(Team.objects.values_list("slug", flat=True))
    found: list[str] = []
    for each in document.rules:
        found += _unmatched(each, "tool", each.when.tools, tools)
        found += _unmatched(each, "team", each.when.teams, teams)
        found += _too_few_people(each)
    return found


def _unmatched(each: PolicyRule, noun: str, patterns: Iterable[str], names: set[str]) -> Iterator[str]:
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            yield f"“{each.name}”: no {noun} is called {pattern}{nearest(pattern, names)}"


def _too_few_people(each: PolicyRule) -> Iterator[str]:
    approval = {"needed": 1, **each.changes.approval}
    if not each.changes.approval:
        return
    groups = approval.get("groups", ApprovalRule().groups)
    people = User.objects.filter(is_active=True, groups__name__in=groups).distinct().count()
    if people < approval["needed"]:
        yield f"“{each.name}”: needs {approval['needed']} of {' or '.join(groups)}, which has {people} active members"
