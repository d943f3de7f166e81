"""Reads the members of one submitted object, and collects what is wrong with them instead of stopping."""

from __future__ import annotations

from typing import Any

from checkpoint.canonical import canonical, escape
from checkpoint.errors import Fault, ValueNotCanonical
from checkpoint.explaining.wording import described, nearest

_REQUIRED: Any = object()
_KINDS: dict[type, str] = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "an array",
    dict: "an object",
}
_REASONING = ("reasoning", "chain_of_thought", "thoughts", "thinking", "scratchpad")
_NO_REASONING = (
    "model reasoning is not accepted: approvers and later agents would read it as fact; "
    "say what is to be done in the goal, the constraints and the arguments"
)


def bytes_of(value: Any) -> int:
    """Size of the value's canonical text; 0 where it has none, which reading the document has reported already."""
    try:
        return len(canonical(value).encode())
    except ValueNotCanonical:
        return 0


class Members:
    """The members of the object at `path` (JSON pointer). Faults go to the list that all readers share."""

    def __init__(self, value: Any, path: str, faults: list[Fault]) -> None:
        self._path = path
        self._faults = faults
        self._known: set[str] = set()
        self._is_object = isinstance(value, dict)
        self._members: dict[str, Any] = value if self._is_object else {}
        if not self._is_object:
            self.fault(message=f"must be an object, not {described(value)}")

    def fault(self, *place: str | int, message: str) -> None:
        """Adds a fault at a place below the object."""
        self._faults.append(Fault(self._path + "".join(f"/{escape(part)}" for part in place), message))

    def value(self, name: str, default: Any) -> Any:
        """The member, of any kind."""
        self._known.add(name)
        return self._members.get(name, default)

    def take[T](self, name: str, kind: type[T], default: T = _REQUIRED) -> T | None:
        """The member, or the default where there is none; a fault and None where it is missing or of another kind."""
        value = self.value(name, default)
        if value is _REQUIRED:
            if self._is_object:
                self.fault(name, message="is missing")
            return None
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        self.fault(name, message=f"must be {_KINDS[kind]}, not {described(value)}")
        return None

    def text(self, name: str, *, longest: int, default: str = _REQUIRED) -> str:
        """A string with something in it, of at most `longest` bytes."""
        text = self.take(name, str, default) or ""
        if not text.strip() and text != default and isinstance(self._members.get(name), str):
            self.fault(name, message="must not be empty")
        if (size := bytes_of(text)) > longest:
            self.fault(name, message=f"has {size} bytes; the limit is {longest}")
        return text

    def refuse_reasoning(self) -> None:
        """Faults for members that look like model reasoning (DESIGN.md section 3, the resume packet)."""
        for name in _REASONING:
            self._known.add(name)
            if name in self._members:
                self.fault(name, message=_NO_REASONING)

    def refuse_the_rest(self) -> None:
        """Faults for members that nobody asked for."""
        known = self._known - set(_REASONING)
        for name in self._members.keys() - self._known:
            self.fault(
                name, message=f"unknown member{nearest(name, known) or f'; known here: {", ".join(sorted(known))}'}"
            )
