"""What was sent beside what was found: two JSON values, member by member.

Members are matched by their place, else by their name where each side has only one of that name: a provider seldom
gives back what it was sent in the same shape. Found is a stranger's word; nothing is concluded from this but by people.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MOST_MEMBERS = 400
_LONGEST = 2_000  # characters of a value


class Verdict(StrEnum):
    """How one member compares; in the order in which a person wants to see them."""

    DIFFERENT = "different"
    SAME = "same"
    ONLY_FOUND = "only found"
    ONLY_SENT = "only sent"


@dataclass(frozen=True)
class Member:
    """One member, named by its place (RFC 6901); values are JSON text, empty where a side has none."""

    place: str
    sent: str
    found: str
    verdict: Verdict


def compare(sent: Any, found: Any) -> list[Member]:
    """The members of both, what differs first; no more than MOST_MEMBERS."""
    left, right = dict(_leaves(sent, "")), dict(_leaves(found, ""))
    partners = _partners(left, right)
    members = [_member(place, left.get(partners.get(place, place)), value) for place, value in right.items()]
    matched = {partners.get(place, place) for place in right}
    members += [_member(place, value, None) for place, value in left.items() if place not in matched]
    order = list(Verdict)
    return sorted(members, key=lambda member: order.index(member.verdict))[:MOST_MEMBERS]


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}/{number}")
    else:
        yield place, json.dumps(value, ensure_ascii=False)[:_LONGEST]


def _partners(left: Mapping[str, str], right: Mapping[str, str]) -> dict[str, str]:
    """For members of the right whose place the left does not have: the left's one member of the same name."""
    free_left, free_right = [p for p in left if p not in right], [p for p in right if p not in left]
    names_left, names_right = Counter(map(_name, free_left)), Counter(map(_name, free_right))
    by_name = {_name(place): place for place in free_left if names_left[_name(place)] == 1}
    return {
        place: by_name[_name(place)]
        for place in free_right
        if names_right[_name(place)] == 1 and _name(place) in by_name
    }


def _name(place: str) -> str:
    return place.rpartition("/")[2]


def _member(place: str, sent: str | None, found: str | None) -> Member:
    if sent is None or found is None:
        verdict = Verdict.ONLY_FOUND if sent is None else Verdict.ONLY_SENT
    else:
        verdict = Verdict.SAME if sent == found else Verdict.DIFFERENT
    return Member(place, sent or "", found or "", verdict)
