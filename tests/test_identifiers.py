"""Ids are UUIDs of version 7, in the order in which they were made."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from checkpoint.models import identifiers
from checkpoint.models.identifiers import uuid7


def test_they_are_of_version_7_and_hold_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identifiers, "_newest", 0)  # other tests of this process set the clock forward
    before = time.time_ns() // 1_000_000
    made = uuid7()
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= time.time_ns() // 1_000_000 + 1


def test_within_a_millisecond_they_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000_000_000_000)
    monkeypatch.setattr(identifiers, "_newest", 0)
    made = [uuid7() for _ in range(2000)]
    assert made == sorted(made)
    assert {(each.version, each.variant) for each in made} == {(7, uuid.RFC_4122)}


def test_those_of_many_threads_are_different() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: uuid7(), range(4000)))
    assert len(set(made)) == len(made)
