"""The form of a task: its fields as the page draws them, and what a browser sent as JSON values.

Every word in it is an agent's: bounded by the tool's schema, escaped and marked as such, and never a link.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from checkpoint.models import Case
from checkpoint.planning.exact_numbers import number_from
from checkpoint.states import CaseReason

PREFIX = "field-"
_MANY_LINES = 200  # characters


@dataclass(frozen=True)
class TaskField:
    """One field.

    Attributes:
        name: of the input; the field's own with a prefix, so that it is no other of the page's.
        kind: "text", "lines", "date", "number", "choice" or "yes_no".
        value: what was typed and refused.
    """

    name: str
    label: str
    hint: str
    kind: str
    required: bool
    value: str
    choices: tuple[str, ...] = ()
    longest: int | None = None
    least: int | None = None
    most: int | None = None
    step: str = ""


def fields_of(case: Case, typed: Mapping[str, str]) -> list[TaskField]:
    """The fields of a task's form, in the order of their names; none where the case is no task."""
    form = _form(case)
    required = form.get("required", [])
    return [
        _field(name, schema, required=name in required, value=typed.get(f"{PREFIX}{name}", ""))
        for name, schema in form.get("properties", {}).items()
    ]


def names(sent: Iterable[str]) -> list[str]:
    """Those of the names that are a task's fields."""
    return [name for name in sent if name.startswith(PREFIX)]


def answer_from(case: Case, sent: Mapping[str, str]) -> dict[str, Any]:
    """The answer as JSON values: what was left empty is left out, what is no number stays text and is refused later."""
    given = {name: sent.get(f"{PREFIX}{name}", "").strip() for name in _form(case).get("properties", {})}
    properties = _form(case).get("properties", {})
    return {name: _value(properties[name]["type"], text) for name, text in given.items() if text}


def _form(case: Case) -> dict[str, Any]:
    if case.reason != CaseReason.HUMAN_TASK or case.step.arguments is None:
        return {}
    form: dict[str, Any] = json.loads(case.step.arguments).get("form", {})
    return form


def _field(name: str, schema: Mapping[str, Any], *, required: bool, value: str) -> TaskField:
    longest = schema.get("maxLength")
    return TaskField(
        name=f"{PREFIX}{name}",
        label=schema.get("title") or name,
        hint=schema.get("description") or "",
        kind=_kind(schema),
        required=required,
        value=value,
        choices=tuple(schema.get("enum", ())),
        longest=longest,
        least=schema.get("minimum"),
        most=schema.get("maximum"),
        step="1" if schema["type"] == "integer" else "any",
    )


def _kind(schema: Mapping[str, Any]) -> str:
    if schema["type"] in ("integer", "number"):
        return "number"
    if schema["type"] == "boolean":
        return "yes_no"
    if "enum" in schema:
        return "choice"
    if "format" in schema:
        return "date"
    return "lines" if schema["maxLength"] > _MANY_LINES else "text"


def _value(kind: str, text: str) -> Any:
    if kind == "boolean":
        return {"yes": True, "no": False}.get(text, text)
    if kind in ("integer", "number"):
        try:
            return number_from(text)
        except ValueError:
            return text
    return text.replace("\r\n", "\n")
