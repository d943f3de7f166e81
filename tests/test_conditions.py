"""Conditions: what they can say, what they must not, and that none of them keeps the machine busy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals.rules.conditions import LONGEST, ConditionFailed, Facts, compile_condition

SECONDS = 2.0  # far above what an evaluation takes, far below what an unbounded one would


def refused(text: str) -> str:
    """Why a condition is refused."""
    started = time.monotonic()
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is what each test looks at)
        compile_condition(text)
    assert time.monotonic() - started < SECONDS
    return str(caught.value)


_TWENTY = str(list(range(20)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("true" + " || true" * 1000, f"the limit is {LONGEST}"),
        ("(" * 400 + "true" + ")" * 400, "limit: 32"),
        ("[" * 300 + "]" * 300 + " == []", "limit: 32"),
        ("arguments" + ".a" * 200, "recursion depth of 32"),
        ("['aa']" + "".join(f".map(x{n}, x{n} + x{n})" for n in range(25)) + " == []", "only all and exists"),
        ("['aaaaaaaa'].map(x, x + x).map(x, x + x).map(x, x + x).size() > 0", "only all and exists"),
        ("arguments.l.filter(x, x > 1).size() > 0", "only all and exists"),
        ("arguments.l.exists_one(x, x > 1)", "only all and exists"),
        ("arguments.l.all(x, [x, x].all(y, y == y))", "a list in a condition may hold constants only"),
        ("['aaaa'].exists(x, arguments.l.exists(y, x + x + x == y))", "+ cannot be used together with all and exists"),
        ("{'a': arguments} == {'a': arguments}", "objects cannot be written"),
        ("'aaa'.matches(arguments.pattern)", "must be written out"),
        ("arguments.s.matches('(')", "invalid regular expression"),
        ("arguments.s.matches('^[ab]*a[ab]{1000}c$')", "repeats up to 1000 times; the limit is 300"),
        ("arguments.s.matches('((a{0,9}){0,9}){0,9}')", "repeats up to 729 times"),
        (r"arguments.s.matches('\\pL+(\\pL{0,200})*')", "cannot be used in patterns"),
        (f"arguments.s.matches('{'a' * 201}')", "201 characters; the limit is 200"),
        ("type(arguments.x) == int", "type cannot be used; there are contains"),
        ("timestamp(arguments.d).getFullYear() > 1", "getFullYear cannot be used"),
        ("import os", "line 1, column 8"),
        ("__import__('os').system('true') == 0", "undeclared reference"),
        ("arguments.__class__.mro()", "line 1, column 24"),
        ("1 + 1", "its value is of type int; it must be true or false"),
        ("'yes'", "its value is of type string"),
        ("", "line 1, column 1: it ends too early"),
        ("arg.cents > 1", "undeclared reference to 'arg.cents'"),
    ],
)
def test_a_condition_that_could_take_long_or_means_nothing_is_refused(text: str, why: str) -> None:
    assert why in refused(text)


def facts(arguments: Any) -> Facts:
    """What a condition sees."""
    return Facts(json.dumps(arguments), "card.charge", "irreversible", "refund", "billing")


_ENDLESS: list[tuple[str, Callable[[], Any]]] = [
    (f"{_TWENTY}.all(a, {_TWENTY}.all(b, {_TWENTY}.all(c, {_TWENTY}.all(d, a >= 0 && b >= 0))))", dict),
    ("arguments.l.all(x, arguments.l.all(y, x >= 0 && y >= 0))", lambda: {"l": list(range(3000))}),
    ("arguments.l.all(x, arguments.l == arguments.l)", lambda: {"l": list(range(10_000))}),
    ("arguments.l.all(x, !arguments.s.contains('aaaaaaaab'))", lambda: {"l": [1] * 5000, "s": "a" * 200_000}),
    ("arguments.l.all(x, !arguments.s.matches('(a|aa)+b'))", lambda: {"l": [1] * 500, "s": "a" * 100_000}),
    ("arguments.l.all(x, arguments.l.all(y, y.all(z, z == x)))", lambda: {"l": [[0] * 50] * 200}),
]


@pytest.mark.parametrize(("text", "arguments"), _ENDLESS)
def test_arguments_that_would_keep_a_condition_busy_leave_it_without_an_answer(
    text: str, arguments: Callable[[], Any]
) -> None:
    condition, given_facts = compile_condition(text), facts(arguments())
    started = time.monotonic()
    with pytest.raises(ConditionFailed, match=r"too large|budget"):
        condition.holds(given_facts)
    assert time.monotonic() - started < SECONDS


_SLOW: list[tuple[str, Callable[[], Any]]] = [
    ("arguments.s.matches('^[ab]*a[ab]{250}c$')", lambda: {"s": "ab" * 120_000}),
    ("arguments.s.contains('aaaaaaaaaaaaaaaab')", lambda: {"s": "a" * 250_000}),
    ("arguments.l.all(x, arguments.l == arguments.l)", lambda: {"l": list(range(1100))}),
    ("arguments.l.exists(x, x == 'b')", lambda: {"l": ["a"] * 9000}),
    (" || ".join(["arguments.l == 1"] * 20), lambda: {"l": list(range(30_000))}),
]


def test_a_loop_over_many_lines_may_look_at_another_argument() -> None:
    condition = compile_condition("arguments.lines.all(line, line.currency == arguments.order.currency && tool != '')")
    lines = [{"currency": "EUR", "text": "x" * 30}] * 4000
    assert condition.holds(facts({"lines": lines, "order": {"currency": "EUR"}}))


@pytest.mark.parametrize(("text", "arguments"), _SLOW)
def test_the_slowest_conditions_that_are_evaluated_end_soon(text: str, arguments: Callable[[], Any]) -> None:
    condition, given_facts = compile_condition(text), facts(arguments())
    started = time.monotonic()
    condition.holds(given_facts)
    assert time.monotonic() - started < SECONDS


@pytest.mark.parametrize(
    ("text", "arguments", "answer"),
    [
        ("arguments.lines.exists(line, line.cents > 500)", {"lines": [{"cents": 5}, {"cents": 501}]}, True),
        ("arguments.lines.all(line, line.currency == arguments.currency)", {"lines": [{"currency": "EUR"}] * 90,
                                                                             "currency": "EUR"}, True),
        ("!arguments.to.endsWith('@ours.example')", {"to": "a@theirs.example"}, True),
        ("arguments.to.matches('^[^@]+@(ours|also-ours)[.]example$')", {"to": "a@ours.example"}, True),
        ("has(arguments.cents) && arguments.cents > 5", {}, False),
        ("arguments.currency in ['EUR', 'USD']", {"currency": "CHF"}, False),
        ("arguments.price + arguments.tax > 100", {"price": 90, "tax": 11}, True),
        ("double(arguments.price) * 1.2 > 100.0", {"price": 90}, True),
        ("timestamp(arguments.due) < timestamp('2027-01-01T00:00:00Z')", {"due": "2026-12-24T00:00:00Z"}, True),
        ("size(arguments.to) > 1", {"to": ["a", "b"]}, True),
        ('arguments["odd name"] == "é"', {"odd name": "é"}, True),
        ("arguments.urgent ? arguments.cents > 1 : arguments.cents > 10", {"urgent": True, "cents": 5}, True),
    ],
)  # fmt: skip
def test_conditions_say_what_policies_need(text: str, arguments: Any, answer: bool) -> None:
    assert compile_condition(text).holds(facts(arguments)) is answer


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="arguments.x()[]{}'\"+-*/<>=!&|?: 0123\\\n,", max_size=80))
def test_any_text_is_a_condition_or_is_refused(text: str) -> None:
    with suppress(ValueError, ConditionFailed):
        assert compile_condition(text).holds(facts({"x": 1})) in (True, False)
