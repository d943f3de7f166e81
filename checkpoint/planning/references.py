"""Arguments that refer to earlier results: `{"$result": "step_name#/pointer"}` and `{"$input": "/pointer"}`.

Such an object, with exactly that one member, stands for the value it names. Pointers are JSON pointers (RFC 6901). The
document of a step's result is `{"operation_id": string or null, "facts": {…}}`. What is put in is data: a reference
inside of a result is not followed.

Arguments that really are such an object, `{"$oid": "…"}` say, are written as `{"$literal": {"$oid": "…"}}`; what a
literal holds is taken as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from checkpoint.canonical import Place, pointer
from checkpoint.errors import Fault, ReferenceUnresolved

LARGEST_ARGUMENTS = 256 * 1024  # bytes of canonical JSON, of one step
RESULT, INPUT, LITERAL = "$result", "$input", "$literal"
_KEPT = {RESULT, INPUT, LITERAL}

_RESULT = re.compile(r"(?P<step>[a-z][a-z0-9_]{0,99})#(?P<pointer>.*)", re.DOTALL)
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_MEANING = (
    'an object with one "$" member is a reference: {"$result": "step_name#/pointer"} or {"$input": "/pointer"}; '
    'to pass such an object on as it is, write {"$literal": …} around it'
)


@dataclass(frozen=True)
class Reference:
    """One reference in a template.

    Attributes:
        place: JSON pointer to where it stands in the template.
        kind: what it reads.
        step: name of the step whose result is read; empty for the input.
        pointer: JSON pointer into the result's document, or into the input.
    """

    place: str
    kind: Literal["result", "input"]
    step: str
    pointer: str


def scan(template: Any) -> tuple[list[Reference], list[Fault]]:
    """Every reference in the template, and every object that looks like one and is none."""
    references, faults = [], []
    for place, found in _walk(template, None):
        try:
            references.append(_reference(found, pointer(place)))
        except ValueError as error:
            faults.append(Fault(pointer(place), str(error)))
    return references, faults


def resolve(template: Any, input_value: Any, results: Mapping[str, Any]) -> Any:
    """The template with every reference replaced by the value it names. `template` was scanned without faults.

    Raises:
        ReferenceUnresolved: a result or the input does not hold what is named; the message says what it holds.
    """
    return _Resolver(input_value, results).filled(template)


def without_literals(template: Any) -> Any:
    """The template with every literal replaced by what it holds; references stay."""
    if isinstance(template, dict):
        if _is_literal(template):
            return template[LITERAL]
        return {name: without_literals(member) for name, member in template.items()}
    return [without_literals(item) for item in template] if isinstance(template, list) else template


def _walk(value: Any, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Every object that has a member with a "$" name, where such a member could be meant as a reference."""
    if isinstance(value, dict):
        if _is_literal(value):
            return
        if _is_reference(value) or not _KEPT.isdisjoint(value):
            yield place, value
            return
        for name, member in value.items():
            yield from _walk(member, (place, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, (place, index))


def _is_literal(value: dict[str, Any]) -> bool:
    return len(value) == 1 and LITERAL in value


def _is_reference(value: dict[str, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith("$")


def _reference(value: dict[str, Any], place: str) -> Reference:
    name, target = next(iter(value.items()))
    if _KEPT.isdisjoint(value):
        raise ValueError(f"{json.dumps(name)} is no reference; {_MEANING}")
    if len(value) > 1 or not isinstance(target, str):
        raise ValueError(f"a reference is an object with this one member, and a string in it; {_MEANING}")
    step, path = "", target
    if name == RESULT:
        step, path = _split(target)
    if not _POINTER.fullmatch(path):
        raise ValueError(f'{json.dumps(path)} is no JSON pointer: write "/member/0", with ~0 for "~" and ~1 for "/"')
    return Reference(place, "result" if name == RESULT else "input", step, path)


def _split(target: str) -> tuple[str, str]:
    match = _RESULT.fullmatch(target)
    if match is None:
        raise ValueError(
            f'{json.dumps(target)} names no result: write "step_name#/facts/member" or "step_name#/operation_id"'
        )
    return match["step"], match["pointer"]


class _Resolver:
    """Fills one template. What references bring in is counted: a small template can name a large value many times."""

    def __init__(self, input_value: Any, results: Mapping[str, Any]) -> None:
        self.input_value = input_value
        self.results = results
        self.left = LARGEST_ARGUMENTS

    def filled(self, template: Any) -> Any:
        if isinstance(template, dict):
            if _is_literal(template):
                return template[LITERAL]
            if _is_reference(template):
                return self._counted(self._value_of(_reference(template, "")))
            return {name: self.filled(member) for name, member in template.items()}
        if isinstance(template, list):
            return [self.filled(item) for item in template]
        return template

    def _value_of(self, reference: Reference) -> Any:
        if reference.kind == "input":
            return _follow(self.input_value, reference.pointer, "the workflow's input")
        if reference.step not in self.results:
            known = ", ".join(sorted(self.results)) or "none"
            raise ReferenceUnresolved(f"step {reference.step} has no result to refer to; steps with a result: {known}")
        return _follow(self.results[reference.step], reference.pointer, f"the result of step {reference.step}")

    def _counted(self, value: Any) -> Any:
        self.left -= len(json.dumps(value))
        if self.left < 0:
            raise ReferenceUnresolved(
                f"the references together bring in more than {LARGEST_ARGUMENTS} bytes; refer to smaller parts"
            )
        return value


def _follow(document: Any, path: str, whose: str) -> Any:
    value, walked = document, ""
    for token in path.split("/")[1:]:
        inside = _child(value, token.replace("~1", "/").replace("~0", "~"))
        if inside is None:
            where = f"at {walked} " if walked else ""
            raise ReferenceUnresolved(f"{whose} has nothing at {path}: {where}there is {_described(value)}")
        value, walked = inside[0], f"{walked}/{token}"
    return value


def _child(value: Any, token: str) -> tuple[Any] | None:
    if isinstance(value, dict) and token in value:
        return (value[token],)
    if isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
        return (value[int(token)],)
    return None


def _described(value: Any) -> str:
    """What is there, by its shape only: values may be secret, names are not."""
    if isinstance(value, dict):
        names = sorted(value)
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        return f"an object with the members {', '.join(names[:10])}{more}" if names else "an empty object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return {str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")
