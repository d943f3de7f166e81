"""The one text of a JSON value: RFC 8785, through a library. Hashes and idempotency keys are taken over this text only.

What RFC 8785 cannot carry exactly is refused here and nowhere else, so that what a person was shown, what was hashed
and what is executed are the same bytes (S15, S51, S52). `parse(canonical(value))` never fails.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import rfc8785

from checkpoint.errors import Fault, ValueNotCanonical
from checkpoint.planning.exact_numbers import number_from, number_problem

DEEPEST = 100

# The place of a value: (place of its parent, member name or index); the document itself is None. Written out as a
# JSON pointer only for a fault, since most documents have none.
Place = tuple[Any, str | int] | None

# Without floats and with ASCII member names only, the standard library's C encoder writes the bytes of RFC 8785, in a
# third of the time; this text is taken several times a step. tests/test_canonical.py holds it to the library.
_AS_RFC_8785 = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_TOO_DEEP = f"nested deeper than {DEEPEST} levels"


def canonical(value: Any) -> str:
    """The RFC 8785 text of a JSON value.

    Raises:
        ValueNotCanonical: the value, or a part of it, has no exact RFC 8785 form.
    """
    walk = _Walk()
    walk.look(value)
    _raise_first(walk.faults)
    return _AS_RFC_8785.encode(value) if walk.plain else rfc8785.dumps(value).decode()


def sha256_hex(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def idempotency_key(*, workflow_id: str, step_name: str, tool: str, arguments: str) -> str:
    """The key of one effect: SHA-256 over canonical {arguments, step_name, tool, workflow_id}; DESIGN.md section 3.

    Args:
        arguments: canonical text. It is put into the object as it is; `arguments` is the first name in RFC 8785 order.
    """
    rest = canonical({"step_name": step_name, "tool": tool, "workflow_id": workflow_id})
    return sha256_hex(f'{{"arguments":{arguments},{rest[1:]}')


def intent_key(*, team_id: str, tool: str, intent: str, arguments: str) -> str:
    """The key of an effect that a caller named: whichever step brings it about, the provider is told this one key.

    Args:
        arguments: canonical text, as for `idempotency_key`.
    """
    rest = canonical({"intent": intent, "team_id": team_id, "tool": tool})
    return sha256_hex(f'{{"arguments":{arguments},{rest[1:]}')


def parse(text: str | bytes) -> Any:
    """Reads JSON (RFC 8259) strictly.

    Raises:
        ValueNotCanonical: not JSON, or a value that `canonical` would refuse; the error names the first such place.
    """
    value, faults = read(text)
    _raise_first(faults)
    return value


def check(value: Any) -> None:
    """Raises ValueNotCanonical for the first part of the value that `canonical` refuses."""
    _raise_first(faults_in(value))


def faults_in(value: Any) -> list[Fault]:
    """Every part of an already parsed value (from YAML, from a tool) that `canonical` refuses."""
    walk = _Walk()
    walk.look(value)
    return walk.faults


def read(text: str | bytes) -> tuple[Any, list[Fault]]:
    """Reads JSON and collects every fault with its place, so that a person sees all of them at once.

    Where there are faults the value has a stand-in at each faulty place, and is of use only for finding more faults.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = json.loads(
            text, object_pairs_hook=_members, parse_int=_number, parse_float=_number, parse_constant=_constant
        )
    except UnicodeDecodeError as error:
        return None, [Fault("", f"not UTF-8: byte {error.start} cannot be read; save the text as UTF-8")]
    except json.JSONDecodeError as error:
        return None, [Fault("", f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}")]
    except RecursionError:
        return None, [Fault("", _TOO_DEEP)]
    walk = _Walk()
    walk.look(value)
    return _without_marks(value) if walk.faults else value, walk.faults


def pointer(place: Place) -> str:
    """The place as a JSON pointer (RFC 6901)."""
    parts: list[str] = []
    while place is not None:
        place, name = place
        parts.append(escape(name))
    return "".join(f"/{part}" for part in reversed(parts))


def escape(name: str | int) -> str:
    """One JSON pointer token (RFC 6901 section 3)."""
    return str(name).replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True)
class _Unreadable:
    """Stands in a parsed document where something was refused, until the walk that knows its place reports it."""

    message: str
    instead: Any = None


def _members(pairs: list[tuple[str, Any]]) -> Any:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    doubled = sorted({name for name, _ in pairs if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
    return _Unreadable(f"has members of the same name: {', '.join(map(_quoted, doubled))}; keep one of each", members)


def _number(text: str) -> Any:
    try:
        return number_from(text)
    except ValueError as error:
        return _Unreadable(str(error), 0)


def _constant(text: str) -> _Unreadable:
    return _Unreadable(f"{text} is not a JSON value; send null, or a string")


def _quoted(name: str) -> str:
    return json.dumps(name if len(name) <= 80 else f"{name[:79]}…")


def _raise_first(faults: Iterable[Fault]) -> None:
    for fault in faults:
        raise ValueNotCanonical(fault.path, fault.message)


class _Walk:
    """Visits a value once and collects its faults.

    Attributes:
        plain: no float and no member name beyond ASCII was seen.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.plain = True

    def look(self, value: Any, place: Place = None, depth: int = 0) -> None:
        if value is None or value is True or value is False:
            return
        if isinstance(value, str):
            if problem := string_problem(value):
                self._fault(place, problem)
        elif isinstance(value, int | float):
            self._look_at_number(value, place)
        elif depth >= DEEPEST:
            self._fault(place, _TOO_DEEP)
        else:
            self._look_inside(value, place, depth)

    def _look_at_number(self, value: float, place: Place) -> None:
        self.plain = self.plain and not isinstance(value, float)
        if problem := number_problem(value):
            self._fault(place, problem)

    def _look_inside(self, value: Any, place: Place, depth: int) -> None:
        if isinstance(value, dict):
            for name, member in value.items():
                self._look_at_name(name, place)
                self.look(member, (place, name), depth + 1)
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                self.look(item, (place, index), depth + 1)
        elif isinstance(value, _Unreadable):
            self._fault(place, value.message)
            self.look(value.instead, place, depth)
        else:
            self._fault(place, f"a {type(value).__name__} is not a JSON value; write it as a quoted string")

    def _look_at_name(self, name: Any, place: Place) -> None:
        if not isinstance(name, str):
            self._fault(place, f"a member's name must be a string, not {name!r}; quote it")
        elif not name.isascii():
            self.plain = False
        if isinstance(name, str) and (problem := string_problem(name)):
            self._fault(place, f"the member's name {problem}")

    def _fault(self, place: Place, message: str) -> None:
        self.faults.append(Fault(pointer(place), message))


def string_problem(text: str) -> str:
    """Why the text cannot be stored or hashed; empty where it can."""
    if not _UNSTORABLE.search(text):
        return ""
    if "\x00" in text:
        return "holds a NUL character (U+0000), which cannot be stored; remove it"
    return "holds half of a surrogate pair, which has no UTF-8 form; send the whole character"


def _without_marks(value: Any, depth: int = 0) -> Any:
    if isinstance(value, _Unreadable):
        return _without_marks(value.instead, depth)
    if not isinstance(value, dict | list):
        return value
    if depth >= DEEPEST:
        return None
    if isinstance(value, dict):
        return {name: _without_marks(member, depth + 1) for name, member in value.items()}
    return [_without_marks(item, depth + 1) for item in value]
