"""The steps of a submitted plan: names, positions, tools, and arguments with references to earlier results."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkpoint.canonical import canonical
from checkpoint.errors import ArgumentsInvalid, Fault, ReferenceUnresolved, ValueNotCanonical
from checkpoint.explaining.wording import nearest
from checkpoint.planning import references
from checkpoint.planning.argument_schemas import match_variant, prepare_arguments, template_faults
from checkpoint.planning.members import Members, bytes_of
from checkpoint.planning.references import LARGEST_ARGUMENTS, Reference

_NO_INTENT: Any = object()
MOST_STEPS = 10_000
LAST_POSITION = 2**31 - 1

INTENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9/_.:@+-]{0,199}")
INTENT_RULE = "must be a name such as invoice/acme/2026-11, of letters, digits and / _ . : @ + -, 200 at most"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")


@dataclass(frozen=True)
class PublishedTool:
    """What a plan needs to know of a tool's newest version; `schema` and `variants` as a ToolVersion stores them."""

    name: str
    version_id: uuid.UUID
    schema: dict[str, Any]
    variants: list[dict[str, Any]]


@dataclass(frozen=True)
class PlannedStep:
    """One step of a plan.

    Attributes:
        template: canonical arguments as planned, with references.
        arguments: canonical arguments; None while they refer to results of earlier steps.
        variant: name of the tool's variant that holds for the arguments; empty while there are none.
        compensates: the step whose effect this one undoes.
        intent: what the caller calls the effect, wider than this workflow; empty where it is this step's alone.
    """

    name: str
    position: int
    tool: str
    tool_version_id: uuid.UUID
    template: str
    arguments: str | None
    variant: str
    intent: str = ""
    compensates: uuid.UUID | None = None


@dataclass(frozen=True)
class _Heading:
    """A step before its arguments were looked at."""

    index: int
    members: Members
    name: str
    position: int
    tool: PublishedTool | None
    intent: str


class StepsReader:
    """Reads all steps: first what they are called and where they stand, then what their arguments refer to."""

    def __init__(
        self,
        tools: Mapping[str, PublishedTool],
        input_value: Any,
        faults: list[Fault],
        positions: Mapping[str, int] | None = None,
    ) -> None:
        self._tools = tools
        self._input = input_value
        self._faults = faults
        self._positions = dict(positions or {})

    def read(self, steps: list[Any] | None, *, behind: int = 0) -> tuple[PlannedStep, ...]:
        """The steps without faults; all faults are in the list that was given.

        Args:
            behind: the position at which the plan ends so far.
        """
        if steps is None:
            return ()
        most = MOST_STEPS - len(self._positions)
        if not 1 <= len(steps) <= most:
            self._faults.append(Fault("/steps", f"must have 1 to {most} steps; it has {len(steps)}"))
            return ()
        headings: list[_Heading] = []
        for index, step in enumerate(steps):
            headings.append(self._heading(index, step, headings[-1].position if headings else behind))
        read = [self._step(heading) for heading in headings]
        return tuple(step for step in read if step is not None)

    def read_again(
        self, name: str, position: int, tool: PublishedTool, arguments: Any, intent: str
    ) -> PlannedStep | None:
        """One step with other arguments, beside the steps that `positions` knew; None with faults."""
        members = Members({"arguments": arguments}, "/steps/0", self._faults)
        return self._step(_Heading(0, members, name, position, tool, intent))

    def _heading(self, index: int, step: Any, previous: int) -> _Heading:
        members = Members(step, f"/steps/{index}", self._faults)
        members.refuse_reasoning()
        position = self._position(members, previous)
        name, tool, intent = self._name(members, position), self._tool(members), self._intent(members)
        return _Heading(index, members, name, position, tool, intent)

    def _name(self, members: Members, position: int) -> str:
        name = members.take("name", str)
        if name is None:
            return ""
        if not _NAME.fullmatch(name):
            members.fault("name", message="must begin with a-z and go on with a-z, 0-9 or _, 100 characters at most")
        elif name in self._positions:
            members.fault("name", message=f'another step is named "{name}"; every step needs a name of its own')
        else:
            self._positions[name] = position
        return name

    def _intent(self, members: Members) -> str:
        if members.value("intent", _NO_INTENT) is _NO_INTENT:
            return ""
        intent = members.take("intent", str)
        if intent is not None and not INTENT_NAME.fullmatch(intent):
            members.fault("intent", message=INTENT_RULE)
        return intent or ""

    def _position(self, members: Members, previous: int) -> int:
        position = members.take("position", int, previous + 1)
        first = max(previous, 1)
        if position is not None and not first <= position <= LAST_POSITION:
            members.fault("position", message=f"must be an integer from {first} on: steps come in order")
            return first
        return position or first

    def _tool(self, members: Members) -> PublishedTool | None:
        name = members.take("tool", str)
        if name is None:
            return None
        if name not in self._tools:
            known = f"; published: {', '.join(sorted(self._tools)) or 'none; start a worker, or run publish_tools'}"
            members.fault("tool", message=f"unknown tool{nearest(name, self._tools) or known}")
        return self._tools.get(name)

    def _step(self, heading: _Heading) -> PlannedStep | None:
        arguments = heading.members.take("arguments", dict, {})
        heading.members.refuse_the_rest()
        if arguments is None:
            return None
        found, faults = references.scan(arguments)
        faults += [fault for reference in found for fault in self._reference_faults(reference, heading)]
        if (size := bytes_of(arguments)) > LARGEST_ARGUMENTS:
            faults.append(
                Fault("", f"has {size} bytes; the limit is {LARGEST_ARGUMENTS}; keep large things as artifacts")
            )
        if not faults and heading.tool is not None:
            return self._with_arguments(heading, heading.tool, arguments, found)
        self._add(heading, faults)
        return None

    def _add(self, heading: _Heading, faults: list[Fault]) -> None:
        self._faults += [Fault(f"/steps/{heading.index}/arguments{fault.path}", fault.message) for fault in faults]

    def _with_arguments(
        self, heading: _Heading, tool: PublishedTool, template: Any, found: list[Reference]
    ) -> PlannedStep | None:
        """Arguments that need no earlier result are complete now; of others only what is certain can be checked."""
        text, variant = None, ""
        try:
            template_text = canonical(template)
            if all(reference.kind == "input" for reference in found):
                text = prepare_arguments(tool.schema, references.resolve(template, self._input, {}))
                variant = match_variant(tool.variants, json.loads(text))
            else:
                places = [reference.place for reference in found]
                if faults := template_faults(tool.schema, references.without_literals(template), places):
                    raise ArgumentsInvalid(faults)
        except ArgumentsInvalid as error:
            self._add(heading, error.faults)
            return None
        except ValueNotCanonical:
            return None  # reported with the document
        return PlannedStep(
            heading.name, heading.position, tool.name, tool.version_id, template_text, text, variant, heading.intent
        )

    def _reference_faults(self, reference: Reference, heading: _Heading) -> list[Fault]:
        problem = self._input_problem(reference) if reference.kind == "input" else self._problem(reference, heading)
        return [Fault(reference.place, problem)] if problem else []

    def _input_problem(self, reference: Reference) -> str:
        try:
            references.resolve({references.INPUT: reference.pointer}, self._input, {})
        except ReferenceUnresolved as error:
            return str(error)
        return ""

    def _problem(self, reference: Reference, heading: _Heading) -> str:
        position = self._positions.get(reference.step)
        if position is None:
            return f"no step is named {reference.step}{nearest(reference.step, self._positions)}"
        if reference.step == heading.name:
            return "a step cannot refer to its own result"
        if position >= heading.position:
            return (
                f"step {reference.step} is not over by then: it has position {position}, this step has "
                f"{heading.position}; refer to a step at an earlier position"
            )
        if reference.pointer.split("/")[1:2] not in ([], ["facts"], ["operation_id"]):
            return f"a result has /operation_id and /facts, and nothing at {reference.pointer}"
        return ""
