"""Says in a sentence what a JSON Schema finds wrong: where, what is there, and what would be accepted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

from jsonschema.exceptions import ValidationError

from checkpoint.canonical import escape
from checkpoint.errors import Fault
from checkpoint.explaining.wording import described, nearest


class _Error(Protocol):
    """What is read of the library's ValidationError, once it comes from a schema that is an object."""

    validator: str
    validator_value: Any
    instance: Any
    schema: dict[str, Any]
    message: str

    @property
    def absolute_path(self) -> Sequence[str | int]: ...

    @property
    def schema_path(self) -> Sequence[str | int]: ...

    @property
    def context(self) -> Sequence[_Error]: ...


# A tool's own words for what a pattern or a choice accepts: "must be <these words>".
MUST_BE = "x-must-be"
# A tool's own words for why it accepts nothing there (beside `"not": {}`).
REFUSED = "x-refused"

_KINDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def faults_from(errors: Iterable[ValidationError]) -> list[Fault]:
    """One fault for each thing that is wrong, ordered by place."""
    return _sorted(cast("Iterable[_Error]", errors))


def _sorted(errors: Iterable[_Error]) -> list[Fault]:
    found = list(errors)
    other_kind = {tuple(error.absolute_path) for error in found if error.validator == "type"}
    faults = {
        fault
        for error in found
        if error.validator == "type" or tuple(error.absolute_path) not in other_kind
        for fault in _faults(error)
    }
    return sorted(faults, key=lambda fault: (fault.path, fault.message))


def _faults(error: _Error) -> Iterator[Fault]:
    special = _SPECIAL.get(error.validator)
    if special is not None:
        yield from special(error)
    else:
        yield Fault(_path(error), _sentence(error))


def _path(error: _Error, *more: str) -> str:
    return "".join(f"/{escape(part)}" for part in [*error.absolute_path, *more])


def _missing(error: _Error) -> Iterator[Fault]:
    for name in error.validator_value:
        if name not in error.instance:
            yield Fault(_path(error, name), "is missing")


def _unknown(error: _Error) -> Iterator[Fault]:
    if error.validator_value is not False:
        yield Fault(_path(error), _sentence(error))
        return
    known = sorted(error.schema.get("properties", {}))
    takes = f"known here: {', '.join(known)}" if known else "no members are known here"
    for name in error.instance:
        if name not in known:
            yield Fault(_path(error, name), f"unknown member{nearest(name, known) or f'; {takes}'}")


def _no_alternative(error: _Error) -> Iterator[Fault]:
    """Reports the alternative that was meant, where one can tell; else what all of them would have accepted."""
    branches: dict[Any, list[_Error]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    if "discriminator" in error.schema and isinstance(error.instance, dict):
        yield from _by_discriminator(error, branches)
        return
    meant = [inner for inner in branches.values() if not any(_other_kind(error, one) for one in inner)]
    if MUST_BE in error.schema and len(meant) != 1:
        yield Fault(_path(error), _sentence(error))
        return
    if len(meant) == 1:
        yield from _sorted(meant[0])
        return
    sentences = dict.fromkeys(_sentence(inner[0]).split(", not ")[0] for inner in meant or branches.values())
    wanted = " or ".join(sentence.removeprefix("must be ") for sentence in sentences)
    yield Fault(_path(error), f"must be {wanted}, not {described(error.instance)}" if wanted else _sentence(error))


def _other_kind(outer: _Error, inner: _Error) -> bool:
    return inner.validator == "type" and inner.absolute_path == outer.absolute_path


def _by_discriminator(error: _Error, branches: dict[Any, list[_Error]]) -> Iterator[Fault]:
    name, mapping = error.schema["discriminator"]["propertyName"], error.schema["discriminator"].get("mapping", {})
    if name not in error.instance:
        yield Fault(_path(error, name), f"is missing; it says which form is meant: {_listed(mapping)}")
        return
    target = mapping.get(error.instance[name]) if isinstance(error.instance[name], str) else None
    for index, branch in enumerate(error.validator_value):
        if target is not None and branch.get("$ref") == target:
            yield from _sorted(branches.get(index, []))
            return
    yield Fault(_path(error, name), f"must be one of {_listed(mapping)}, not {described(error.instance[name])}")


_SPECIAL: dict[str, Callable[[_Error], Iterator[Fault]]] = {
    "required": _missing,
    "additionalProperties": _unknown,
    "anyOf": _no_alternative,
    "oneOf": _no_alternative,
}


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)


def _kinds(wanted: str | list[str]) -> str:
    return " or ".join(_KINDS[kind] for kind in ([wanted] if isinstance(wanted, str) else wanted))


_SENTENCES: dict[str, Callable[[Any], str]] = {
    "type": lambda wanted: f"must be {_kinds(wanted)}",
    "enum": lambda values: f"must be one of {_listed(values)}",
    "const": lambda value: f"must be {_listed([value])}",
    "minimum": lambda limit: f"must be at least {limit}",
    "maximum": lambda limit: f"must be at most {limit}",
    "exclusiveMinimum": lambda limit: f"must be more than {limit}",
    "exclusiveMaximum": lambda limit: f"must be less than {limit}",
    "multipleOf": lambda unit: f"must be a multiple of {unit}",
    "minLength": lambda limit: f"must have at least {limit} characters",
    "maxLength": lambda limit: f"must have at most {limit} characters",
    "pattern": lambda pattern: f"must match the pattern {pattern}",
    "format": lambda name: f'must be a string of the format "{name}"',
    "minItems": lambda limit: f"must have at least {limit} items",
    "maxItems": lambda limit: f"must have at most {limit} items",
    "uniqueItems": lambda _: "must not hold an item twice",
    "minProperties": lambda limit: f"must have at least {limit} members",
    "maxProperties": lambda limit: f"must have at most {limit} members",
}


def _sentence(error: _Error) -> str:
    if error.validator in ("pattern", "anyOf", "oneOf") and isinstance(wanted := error.schema.get(MUST_BE), str):
        return f"must be {wanted}, not {described(error.instance)}"
    if error.validator == "not" and isinstance(why := error.schema.get(REFUSED), str):
        return why
    wording = _SENTENCES.get(error.validator)
    if wording is None:
        return error.message if len(error.message) <= 200 else f"{error.message[:199]}…"
    if error.validator.startswith(("min", "max")) and hasattr(error.instance, "__len__"):
        return f"{wording(error.validator_value)}; it has {len(error.instance)}"
    return f"{wording(error.validator_value)}, not {described(error.instance)}"
