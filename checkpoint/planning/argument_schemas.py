"""Arguments against a tool's schema (JSON Schema 2020-12, as pydantic writes it), and the one text that results.

`prepare_arguments` is the only way from what an agent wrote to what is hashed, shown and executed: validated as
written, defaults filled in, RFC 8785 (S15, S51). Validators are compiled once for each schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import referencing
from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError

from checkpoint.canonical import canonical, escape
from checkpoint.errors import ArgumentsInvalid, Fault, ValueNotCanonical
from checkpoint.planning.answerable_forms import ANSWERABLE, unanswerable
from checkpoint.planning.references import LARGEST_ARGUMENTS
from checkpoint.planning.schema_defaults import Defaults
from checkpoint.planning.schema_faults import faults_from

# Only formats whose checks are exact and quick; a tool's own model may be stricter and refuses before it sends.
_FORMATS = FormatChecker(formats=["date-time", "date", "duration", "uuid", "email", "ipv4", "ipv6"])
_DEFS = "#/$defs/"
_Validator: type[Draft202012Validator] = validators.extend(  # type: ignore[no-untyped-call]  # the library has no types
    Draft202012Validator, {ANSWERABLE: unanswerable}
)


def prepare_arguments(schema: dict[str, Any], value: Any) -> str:
    """Canonical text of the arguments, validated and with the schema's defaults filled in.

    Raises:
        ArgumentsInvalid: all faults, with paths inside the arguments; also when the text is over 256 KiB.
    """
    compiled = _compiled(json.dumps(schema))
    if faults := faults_from(compiled.validator.iter_errors(value)):
        raise ArgumentsInvalid(faults)
    try:
        text = canonical(compiled.defaults.fill(value))
    except ValueNotCanonical as error:
        raise ArgumentsInvalid([Fault(error.path, error.message)]) from error
    if len(text.encode()) > LARGEST_ARGUMENTS:
        raise ArgumentsInvalid([Fault("", f"larger than {LARGEST_ARGUMENTS} bytes; keep large things as artifacts")])
    return text


def template_faults(schema: dict[str, Any], template: Any, places: Sequence[str]) -> list[Fault]:
    """What is wrong in arguments that still have references at `places` (JSON pointers), whatever these may become."""
    errors = _compiled(json.dumps(schema)).validator.iter_errors(template)
    referenced = [tuple(place.split("/")[1:]) for place in places]
    faults = faults_from(error for error in errors if not _may_vanish(error, referenced))
    return [fault for fault in faults if not _covered(tuple(fault.path.split("/")[1:]), referenced)]


def match_variant(variants: Sequence[Mapping[str, Any]], arguments: Any) -> str:
    """Name of the first variant whose `when` schema holds for the arguments.

    Args:
        variants: as a tool version stores them.
        arguments: the value of the canonical text.

    Raises:
        ArgumentsInvalid: none of them does.
    """
    for variant in variants:
        when = variant["when"]
        if not when or _compiled(json.dumps(when)).validator.is_valid(arguments):
            return str(variant["name"])
    names = ", ".join(variant["name"] for variant in variants)
    raise ArgumentsInvalid([Fault("", f"none of the tool's variants ({names}) takes such arguments")])


def closed(schema: Any) -> Any:
    """The schema with `additionalProperties: false` wherever a pydantic model left it out.

    Such a model ignores unknown members. But a misspelt argument must be an error, and what the tool ignores must not
    be shown to an approver as if it counted (S15).
    """
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: member if name in _LITERALS else closed(member) for name, member in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        result.setdefault("additionalProperties", False)
    return result


_LITERALS = {"default", "const", "enum", "examples"}


def check_schema(schema: dict[str, Any]) -> None:
    """Raises ValueError where a schema is not valid JSON Schema 2020-12, or refers outside of its own `$defs`."""
    problem = next(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema), None)
    if problem is not None:
        raise ValueError(f"not a JSON Schema: {problem.message}")
    for target in _targets(schema):
        if not target.startswith(_DEFS) or target.removeprefix(_DEFS) not in schema.get("$defs", {}):
            raise ValueError(f"the schema refers to {target!r}; only entries of its own $defs can be referred to")


def _targets(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for name, member in schema.items():
            if name not in _LITERALS:
                yield from _targets(member)
    elif isinstance(schema, list):
        for item in schema:
            yield from _targets(item)


class _Compiled:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.validator = _validator(schema)
        self.defaults = Defaults(schema, self._is_valid)
        self._defs = schema.get("$defs", {})
        self._branches: dict[int, Draft202012Validator] = {}

    def _is_valid(self, branch: Any, value: Any) -> bool:
        if isinstance(branch, bool):
            return branch
        if id(branch) not in self._branches:
            self._branches[id(branch)] = _validator({**branch, "$defs": self._defs})
        return self._branches[id(branch)].is_valid(value)


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    """With an empty registry: the library's own would fetch schemas from the network."""
    return _Validator(schema, registry=referencing.Registry(), format_checker=_FORMATS)


@lru_cache(maxsize=1024)
def _compiled(schema_text: str) -> _Compiled:
    """Keyed by the schema's text: tool versions are read from the database again and again, as new objects."""
    return _Compiled(json.loads(schema_text))


def _covered(path: tuple[str, ...], places: Sequence[tuple[str, ...]]) -> bool:
    return any(path[: len(place)] == place for place in places)


# Keywords that judge a value by what is inside of it; the others judge its kind, its size or its names.
_LOOK_INSIDE = {"const", "enum", "not", "contains", "uniqueItems", "if", "dependentSchemas", "unevaluatedProperties"}


def _may_vanish(error: ValidationError, places: Sequence[tuple[str, ...]]) -> bool:
    """Whether the fault may be gone once the references are replaced."""
    path = tuple(escape(part) for part in error.absolute_path)
    if error.validator == "not" and error.validator_value == {}:
        return False  # nothing is accepted there, whatever it becomes
    if _covered(path, places):
        return True
    if not any(place[: len(path)] == path for place in places):
        return False
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or []:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    if any(all(_may_vanish(inner, places) for inner in branch) for branch in branches.values()):
        return True
    return error.validator in _LOOK_INSIDE or (error.validator == "oneOf" and not branches)
