"""What a policy may look like, as a JSON Schema (2020-12). docs/policies.md explains every field."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import Any

from checkpoint.budgets import Policy
from checkpoint.contracts import Reversibility
from checkpoint.gates.rulings import DriftAnswer, OnFailure, OnTimeout, Scope
from checkpoint.planning.schema_faults import MUST_BE
from checkpoint.states import CASE_RULES, Decision

MOST_RULES = 500
LONGEST_TIME = 366 * 86_400  # seconds
NO_APPROVAL = "none"

_COUNTS = ("max_attempts", "max_inspections")


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _seconds(least: int = 0) -> dict[str, Any]:
    return {"type": "number", "minimum": least, "maximum": LONGEST_TIME}


def _one_of(choices: type[StrEnum]) -> dict[str, Any]:
    return {"type": "string", "enum": [choice.value for choice in choices]}


def _one_or_several(item: dict[str, Any], words: str) -> dict[str, Any]:
    several = {"type": "array", "items": item, "minItems": 1, "maxItems": 50}
    return {"anyOf": [item, several], MUST_BE: f"{words}, or an array of them"}


def _not_empty(properties: dict[str, Any]) -> dict[str, Any]:
    return _object(properties, minProperties=1)


_PATTERN = _one_or_several({"type": "string", "minLength": 1, "maxLength": 100}, "a pattern")
_GROUPS = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 150},
    "minItems": 1,
    "maxItems": 20,
    "uniqueItems": True,
}
_NEEDED = _whole(1, 20)
_BUDGETS = {
    each.name: _whole(1, 1_000) if each.name in _COUNTS else {**_seconds(), "exclusiveMinimum": 0}
    for each in fields(Policy)
}
_LIMITS = {
    "in_flight": _whole(1, 1_000_000),
    "in_flight_per_workflow": _whole(1, 1_000_000),
    "starts_per_minute": {"type": "number", "minimum": 0.001, "maximum": 1_000_000},
    "burst": _whole(1, 1_000_000),
}
_APPROVAL = _not_empty(
    {
        "scope": _one_of(Scope),
        "needed": _NEEDED,
        "groups": _GROUPS,
        "self_approval": {"type": "boolean"},
        "wait_seconds": _seconds(),
        "expires_seconds": _seconds(1),
        "on_timeout": _one_of(OnTimeout),
        "escalate_to": _GROUPS,
    }
)
_PEOPLE = _object({"needed": _NEEDED, "groups": _GROUPS})
_ONE_PERSON = _object({"groups": _GROUPS})
_DECISIONS = _not_empty(
    {
        reason.value: _not_empty(
            # Two people who fill in one form give two answers.
            {decision.value: _ONE_PERSON if decision is Decision.ANSWER else _PEOPLE for decision in case.decisions}
        )
        for reason, case in CASE_RULES.items()
    }
)

_RULE = _object(
    {
        "name": {"type": "string", "minLength": 1, "maxLength": 100, "pattern": r"\S", MUST_BE: "a few words"},
        "when": _object(
            {
                "tool": _PATTERN,
                "reversibility": _one_or_several(_one_of(Reversibility), "one of " + ", ".join(Reversibility)),
                "kind": _PATTERN,
                "team": _PATTERN,
                "if": {"type": "string"},
            }
        ),
        "set": _not_empty(
            {
                "approval": {
                    "anyOf": [{"type": "string", "const": NO_APPROVAL}, _APPROVAL],
                    MUST_BE: f'an object, or "{NO_APPROVAL}"',
                },
                "decisions": _DECISIONS,
                "budgets": _not_empty(_BUDGETS),
                "limits": _not_empty(_LIMITS),
                "drift": _not_empty({name: _one_of(DriftAnswer) for name in ("policy", "prompt", "tool")}),
                "batch": _not_empty({"on_failure": _one_of(OnFailure)}),
                "step_up": {"type": "boolean"},
            }
        ),
    },
    required=["name", "set"],
)

SCHEMA: dict[str, Any] = _object(
    {"defaults": _object(_BUDGETS), "rules": {"type": "array", "items": _RULE, "maxItems": MOST_RULES}}
)
