"""Forms that nobody could answer, found where a plan is submitted: the keyword `x-answerable` of JSON Schema.

JSON Schema cannot hold one member of a value against another, so the schema of `human.task` carries this keyword at its
form. A member that is still a reference is passed over; it is judged once it is known. Plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

ANSWERABLE = "x-answerable"
LARGEST_ANSWER = 12 * 1024  # bytes of canonical JSON; with reason and name it fits into a receipt

_BOUNDS = (("minimum", "maximum"), ("minLength", "maxLength"))


def unanswerable(_validator: Any, _wanted: Any, form: Any, _schema: Any) -> Iterator[ValidationError]:
    """What of a form contradicts itself, each with its place inside of the form; as the validator's keywords do."""
    fields = form.get("properties") if isinstance(form, dict) else None
    if not isinstance(fields, dict) or any(name.startswith("$") for name in fields):
        return
    for name, field in fields.items():
        yield from _contradictions(name, field if isinstance(field, dict) else {})
    required = form.get("required")
    names = required if isinstance(required, list) else []
    for number, name in enumerate(names):
        if isinstance(name, str) and name not in fields:
            known = ", ".join(sorted(fields))
            yield ValidationError(f"names no field of this form; its fields: {known}", path=("required", number))
    if _shortest(fields, names) > LARGEST_ANSWER:
        message = (
            f"asks for at least {_shortest(fields, names)} characters; an answer has at most {LARGEST_ANSWER} bytes"
        )
        yield ValidationError(message, path=("properties",))


def _contradictions(name: str, field: Mapping[str, Any]) -> Iterator[ValidationError]:
    for least, most in _BOUNDS:
        if _number(field.get(least)) and _number(field.get(most)) and field[least] > field[most]:
            message = f"must be at most {field[most]}, its {most}; nobody could answer it so"
            yield ValidationError(message, path=("properties", name, least))
    if isinstance(choices := field.get("enum"), list) and len(set(map(str, choices))) < max(len(choices), 1):
        said = "must not hold a choice twice" if choices else "must hold a choice; nobody could answer it so"
        yield ValidationError(said, path=("properties", name, "enum"))


def _shortest(fields: Mapping[str, Any], required: list[Any]) -> int:
    """Characters that no answer can do without."""
    needed = [fields[name] for name in set(map(str, required)) & set(fields)]
    lengths = [field["minLength"] for field in needed if isinstance(field, dict) and _number(field.get("minLength"))]
    return int(sum(lengths))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
