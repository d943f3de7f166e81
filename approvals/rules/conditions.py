"""Conditions over a step's arguments: CEL expressions, compiled once, evaluated in bounded time. Plain Python.

`cel_expr_python` is CEL's own C++ runtime; docs/decisions/conditions-are-cel.md says what was tried. Nothing is ever
handed to `eval`: an expression can read the variables below and compute true or false, and that is all.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from cel_expr_python import cel

from approvals.rules.condition_shapes import Path, Shape, shape_of

LONGEST = 1_000  # characters
MOST_WORK = 2 * 10**8  # comparisons of one character; about a second even for what is made to be slow
SMALL_VARIABLES = ("tool", "reversibility", "kind", "team")
_LONGEST_MESSAGE = 200

_ENVIRONMENT = cel.NewEnv(
    variables={
        "arguments": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
        **dict.fromkeys(SMALL_VARIABLES, cel.Type.STRING),
    }
)
_PATTERN = cel.NewEnv(variables={"pattern": cel.Type.STRING}).compile('"".matches(pattern)')
_PLACED = re.compile(r"<input>:(\d+):(\d+): (.*?)(?: \(in container ''\))?(?: \[[A-Z_]+\])?$", re.MULTILINE)
_EXPECTED = re.compile(r" expecting \{[^\n]*")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_IN_OUR_WORDS = {
    "Syntax error: mismatched input '<EOF>'": "it ends too early",
    "Key not found in map : ": "there is no member ",
    "No matching overloads found : ": "no operation fits: ",
}


class ConditionFailed(Exception):
    """The condition has no answer for these arguments; the message says why."""


@dataclass(frozen=True)
class Facts:
    """What a condition can look at, converted once for all conditions about one step.

    Attributes:
        arguments: canonical JSON; None while they refer to results that are not there yet.
    """

    arguments: str | None
    tool: str
    reversibility: str
    kind: str
    team: str

    @cached_property
    def value(self) -> Any:
        """The arguments as JSON values."""
        return json.loads(self.arguments or "null")

    @cached_property
    def longest(self) -> int:
        """Members of the largest object or array in the arguments."""
        longest, ahead = 0, [self.value]
        while ahead:
            value = ahead.pop()
            if isinstance(value, dict | list):
                longest = max(longest, len(value))
                ahead.extend(value.values() if isinstance(value, dict) else value)
        return longest

    def size_at(self, path: Path) -> int:
        """Characters of the JSON at the end of a path; of everything where it does not begin at the arguments."""
        value = self.value
        if path[0] != "arguments":
            return len(self.arguments or "")
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        return len(json.dumps(value, ensure_ascii=False))

    @cached_property
    def activation(self) -> Any:
        """The variables as the runtime wants them."""
        words = {name: getattr(self, name) for name in SMALL_VARIABLES}
        return _ENVIRONMENT.Activation({"arguments": self.value, **words})


@dataclass(frozen=True, eq=False)
class Condition:
    """A compiled condition. It may be used from several threads at once."""

    text: str
    program: Any
    shape: Shape

    def holds(self, facts: Facts) -> bool:
        """Whether it is true of the facts.

        Raises:
            ConditionFailed: a member is missing or of another kind, the arguments are not there yet, or evaluating
                it would take too long.
        """
        if facts.arguments is None:
            raise ConditionFailed("the arguments are not there yet")
        try:
            if self._work(facts) > MOST_WORK:
                raise ConditionFailed("the arguments are too large to evaluate it in bounded time")
            result = self.program.eval(facts.activation)
            value = result.value()
        except Exception as error:  # whatever the runtime meets, the answer is "not known"
            raise ConditionFailed(_sentence(error)) from error
        if result.type() == cel.Type.BOOL:
            return bool(value)
        wrong = result.type() == cel.Type.ERROR
        raise ConditionFailed(_sentence(value) if wrong else "it is neither true nor false")

    def _work(self, facts: Facts) -> int:
        outer = sum(map(facts.size_at, self.shape.outer))
        longest = facts.longest if self.shape.depth else 1
        return self.shape.work(size=len(facts.arguments or ""), longest=longest, outer=outer)


@lru_cache(maxsize=1_000)
def compile_condition(text: str) -> Condition:
    """The condition of that text.

    Raises:
        ValueError: it is no condition; the message says where and what is wrong.
    """
    if len(text) > LONGEST:
        raise ValueError(f"has {len(text)} characters; the limit is {LONGEST}")
    try:
        program = _ENVIRONMENT.compile(text)
    except RuntimeError as error:
        raise ValueError(_placed(str(error))) from None
    if program.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise ValueError(f"its value is of type {program.return_type().name().lower()}; it must be true or false")
    shape = shape_of(program.serialize(), small=frozenset(SMALL_VARIABLES))
    for pattern in shape.patterns:
        _check_pattern(pattern)
    return Condition(text, program, shape)


def _check_pattern(pattern: str) -> None:
    result = _PATTERN.eval(data={"pattern": pattern})
    if result.type() == cel.Type.ERROR:
        raise ValueError(_sentence(result.value()))


def _placed(message: str) -> str:
    """The compiler's complaints, each with its place."""
    found = _PLACED.findall(_EXPECTED.sub("", message))
    placed = [f"line {line}, column {column}: {what}" for line, column, what in found]
    return _sentence("; ".join(dict.fromkeys(placed)) or message)


def _sentence(error: object) -> str:
    sentence = _STATUS.sub("", str(error))
    for theirs, ours in _IN_OUR_WORDS.items():
        sentence = sentence.replace(theirs, ours)
    return sentence[:_LONGEST_MESSAGE]
