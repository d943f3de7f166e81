"""Reads YAML as another spelling of JSON, from parser events: no objects, no dates, no guessing.

What YAML 1.1 and 1.2 read differently (`no`, `0x1F`, `12:30`, dates) is refused with "quote it". Anchors and aliases
are allowed as long as what they expand to stays within the size limit of a document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from checkpoint import canonical
from checkpoint.canonical import Place, pointer
from checkpoint.errors import Fault
from checkpoint.planning.exact_numbers import number_from

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: dict[str, bool | None] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_WORDS |= {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_STRING_TAGS = {"!", "tag:yaml.org,2002:str"}
_TAG = "tag:yaml.org,2002:"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_NAME = object()


class _Refused(Exception):
    def __init__(self, place: Place, message: str) -> None:
        self.fault = Fault(pointer(place), message)


def read_yaml(text: str, largest: int) -> tuple[Any, list[Fault]]:
    """The document's value and all faults in it; where there are some, with a stand-in at each faulty place.

    Args:
        largest: characters to which aliases may expand the document.
    """
    builder = _Builder(largest)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            builder.take(event)
    except _Refused as refused:
        return None, [*builder.faults, refused.fault]
    except (yaml.YAMLError, RecursionError) as error:
        return None, [*builder.faults, Fault("", f"not YAML: {_where(error)}")]
    return builder.value, [*builder.faults, *canonical.faults_in(builder.value)]


def _where(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    return f"{problem or error} at line {mark.line + 1}, column {mark.column + 1}" if mark else str(error)


@dataclass
class _Open:
    """A container whose end was not read yet."""

    value: dict[str, Any] | list[Any]
    place: Place
    anchor: str | None
    spent: int
    name: Any = _NO_NAME


class _Builder:
    """Builds the value without recursion, so that nesting cannot exhaust the stack.

    Attributes:
        spent: characters and values so far, with everything that aliases repeat.
    """

    def __init__(self, largest: int) -> None:
        self.value: Any = None
        self.faults: list[Fault] = []
        self.spent = 0
        self._largest = largest
        self._open: list[_Open] = []
        self._anchored: dict[str, tuple[Any, int]] = {}
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """The next event of the parser."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _Refused(None, 'more than one document in the file; remove everything from the second "---" on')

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self.spent += len(event.value) + 1
        if self._awaits_name():
            self._open[-1].name = self._member_name(event)
            return
        value = self._scalar_value(event)
        if event.anchor:
            self._anchored[event.anchor] = value, len(event.value) + 1
        self._add(value)

    def _begin(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if self._awaits_name():
            raise _Refused(self._place(), "a member's name must be a string, not a collection")
        if event.tag is not None and not event.tag.startswith((f"{_TAG}map", f"{_TAG}seq")):
            raise _Refused(self._place(), f"the tag {event.tag} is not supported; only plain JSON values are")
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._open.append(_Open(value, self._place(), event.anchor, self.spent))
        self.spent += 1

    def _end(self) -> None:
        closed = self._open.pop()
        if closed.anchor:
            self._anchored[closed.anchor] = closed.value, self.spent - closed.spent
        self._add(closed.value)

    def _alias(self, anchor: str | None) -> None:
        if anchor is None or self._awaits_name() or anchor not in self._anchored:
            raise _Refused(self._place(), f"*{anchor} refers to no complete value before it; write the value out")
        value, size = self._anchored[anchor]
        self.spent += size
        if self.spent > self._largest:
            raise _Refused(self._place(), f"the aliases expand to more than {self._largest} characters; write less")
        self._add(value)

    def _awaits_name(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].name is _NO_NAME

    def _place(self) -> Place:
        """The place of the value that comes next."""
        if not self._open:
            return None
        parent = self._open[-1]
        if isinstance(parent.value, list):
            return parent.place, len(parent.value)
        return parent.place if parent.name is _NO_NAME else (parent.place, parent.name)

    def _add(self, value: Any) -> None:
        if not self._open:
            self.value = value
            return
        parent = self._open[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
            return
        if parent.name in parent.value:
            self._fault(parent.place, f'has two members named "{parent.name}"; keep one')
        parent.value[parent.name] = value
        parent.name = _NO_NAME

    def _member_name(self, event: yaml.ScalarEvent) -> str:
        if event.implicit[0] and event.value == "<<":
            self._fault(self._open[-1].place, "merging with << is not supported; write the members out")
        elif not isinstance(self._scalar_value(event), str):
            self._fault(self._open[-1].place, f'a member\'s name must be a string; quote it: "{event.value}"')
        return str(event.value)

    def _scalar_value(self, event: yaml.ScalarEvent) -> Any:
        text = str(event.value)
        if event.tag is not None and event.tag not in _STRING_TAGS:
            self._fault(self._place(), f"the tag {event.tag} is not supported; only plain JSON values are")
            return text
        if event.tag is not None or not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _JSON_NUMBER.fullmatch(text):
            return self._number(text)
        if problem := _ambiguity(text):
            self._fault(self._place(), problem)
        return text

    def _number(self, text: str) -> Any:
        try:
            return number_from(text)
        except ValueError as error:
            self._fault(self._place(), str(error))
            return 0

    def _fault(self, place: Place, message: str) -> None:
        self.faults.append(Fault(pointer(place), message))


_PROBLEMS = {
    "timestamp": 'a date must be a quoted string: "{}"',
    "bool": '{} means true or false to some readers of YAML; write true or false, or quote it: "{}"',
    "int": '{} is read as different numbers by different readers of YAML; write it in digits, or quote it: "{}"',
    "float": '{} is not a JSON number; write it in digits, or quote it: "{}"',
}


def _ambiguity(text: str) -> str:
    """Why an unquoted text is not simply a string; empty if it is."""
    for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], []):
        if pattern.match(text):
            shown = text if len(text) <= 40 else f"{text[:39]}…"
            return _PROBLEMS.get(tag.removeprefix(_TAG), "").replace("{}", shown)
    return ""
