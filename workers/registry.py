"""Tools: what one is, and where they are found.

A tool comes from any installed Django app's `tools.py` (a list named `TOOLS`) or from an entry point of the group
`checkpoint.tools`, so that a package adds tools without touching this one.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from uuid import UUID

from django.apps import apps
from pydantic import BaseModel

from checkpoint.contracts import Variant
from checkpoint.outcomes import Facts, Inspection, NotApplied, Receipt, Verification

if TYPE_CHECKING:
    from workers.call_artifacts import CallArtifacts

ENTRY_POINT_GROUP = "checkpoint.tools"

_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


@dataclass(frozen=True)
class Deadline:
    """A point on the boot clock, which goes on while a process is stopped or the machine sleeps."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline `seconds` from now."""
        return cls(boot_time() + seconds)

    def remaining(self) -> float:
        """Seconds left; negative once it has passed."""
        return self.at - boot_time()

    def check_before_send(self) -> None:
        """Call immediately before the first byte goes out.

        Raises:
            NotApplied: the deadline has passed; nothing was sent.
        """
        if self.remaining() <= 0:
            raise NotApplied("the call's deadline passed before anything was sent", code="deadline_before_send")


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Seconds on the boot clock."""
    return time.clock_gettime(_BOOT_CLOCK)


class FlightSlot(Protocol):
    """Where it is noted how far one call has come, so that it is known after the process was killed."""

    def sending(self) -> None:
        """From here on a byte may have left."""

    def answered(self, receipt: Receipt) -> None:
        """The effect took place."""


@dataclass(frozen=True)
class Call:
    """What a tool is told about the call it makes.

    Attributes:
        key: the idempotency key: the same on every attempt, for ever.
        fence: rises at every acquisition, for systems that can check it.
        attempt: number of this attempt, from 1.
        operation_id: the provider's id, once a receipt was recorded.
        facts: the receipt's facts, once recorded (for `verify`).
        deadline: hold to it; `sending` checks it.
        flight: where the flight recorder notes how far the call has come; None for what has no effect.
    """

    workflow_id: str
    step_name: str
    key: str
    fence: int
    attempt: int
    deadline: Deadline
    operation_id: str | None = None
    facts: Facts | None = None
    flight: FlightSlot | None = None

    def sending(self) -> None:
        """Call immediately before the first byte of the effect goes out.

        Raises:
            NotApplied: the deadline has passed; nothing was sent.
        """
        self.deadline.check_before_send()
        if self.flight is not None:
            self.flight.sending()

    @property
    def artifacts(self) -> CallArtifacts:
        """The workflow's large things: to store what the call made, and to open what its arguments refer to."""
        from workers.call_artifacts import CallArtifacts

        return CallArtifacts(UUID(self.workflow_id))

    def answered(self, receipt: Receipt) -> None:
        """Call with the receipt where work is left between the provider's answer and the end of `execute`."""
        if self.flight is not None:
            self.flight.answered(receipt)


@runtime_checkable
class Tool(Protocol):
    """One kind of effect. `docs/writing-a-tool.md` shows a complete one.

    Plain class attributes do for the first four. `inspect` and `verify` are called only where the variant's contract
    says that they exist. One instance serves all calls, from many threads at once. A tool with the further attribute
    `reports_sending = True` promises that nothing of an effect leaves before `execute` has called `call.sending()`; one
    with a method `argument_rules()` has plans held against these JSON Schemas too, an operator's list for instance.
    """

    @property
    def name(self) -> str:
        """What steps call it: lower-case words with dots between, for instance "http.request"."""
        ...

    @property
    def version(self) -> str:
        """Raised with every change of what arguments mean or of what is promised; steps pin it."""
        ...

    @property
    def summary(self) -> str:
        """One line for people."""
        ...

    @property
    def Arguments(self) -> type[BaseModel]:  # noqa: N802 (it is a class)
        """The arguments: a pydantic model. It gets canonical JSON, read strictly; unknown members are refused."""
        ...

    def variants(self) -> Sequence[Variant]:
        """Contracts with the arguments they hold for; the first that matches counts."""
        ...

    def execute(self, arguments: Any, call: Call) -> Receipt:
        """Makes the effect. Raises NotApplied only on proof that nothing happened."""
        ...

    def inspect(self, arguments: Any, call: Call) -> Inspection:
        """Looks the effect up by `call.key` or `call.operation_id`."""
        ...

    def verify(self, arguments: Any, call: Call) -> Verification:
        """Reads the outcome by another path than the action."""
        ...


def reports_sending(tool: Tool) -> bool:
    """Whether the tool itself says when the first byte goes out; otherwise it counts as sending from its start on."""
    return getattr(tool, "reports_sending", False) is True


def argument_rules(tool: Tool) -> Sequence[dict[str, Any]]:
    """JSON Schemas that arguments have to meet beside the model's, where the tool has `argument_rules()`."""
    rules: Callable[[], Sequence[dict[str, Any]]] | None = getattr(tool, "argument_rules", None)
    return rules() if rules else ()


def label(tool: Tool) -> str:
    """How workers and steps name a tool's version: name@version."""
    return f"{tool.name}@{tool.version}"


class ToolInvalid(Exception):
    """What was found is no tool, or cannot be loaded. The message names the place and what is missing."""


class ToolNameTaken(Exception):
    """Two different tools claim one name."""


def discover() -> dict[str, Tool]:
    """Every tool that this process can run, by name.

    Raises:
        ToolInvalid: something in a list of tools is none.
        ToolNameTaken: two tools have one name.
    """
    found: dict[str, tuple[Tool, str]] = {}
    for candidate, place in [*_from_installed_apps(), *_from_entry_points()]:
        tool = _checked(candidate, place)
        known, where = found.setdefault(tool.name, (tool, place))
        # A package can be an installed app and have an entry point: one class found twice is one tool.
        if type(known) is not type(tool):
            raise ToolNameTaken(f"two tools are named {tool.name!r}, in {where} and in {place}: rename one of them")
    return {name: tool for name, (tool, _) in found.items()}


def _from_installed_apps() -> Iterable[tuple[object, str]]:
    for app in apps.get_app_configs():
        module_name = f"{app.name}.tools"
        if importlib.util.find_spec(module_name) is not None:
            for tool in getattr(importlib.import_module(module_name), "TOOLS", []):
                yield tool, module_name


def _from_entry_points() -> Iterable[tuple[object, str]]:
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        place = f"entry point {entry_point.name} = {entry_point.value}"
        try:
            yield entry_point.load(), place
        except (ImportError, AttributeError) as error:
            raise ToolInvalid(f"{place} cannot be loaded: {error}") from error


def _checked(candidate: object, place: str) -> Tool:
    tool = candidate() if isinstance(candidate, type) else candidate
    if not isinstance(tool, Tool):
        members = ("name", "version", "summary", "Arguments", "variants", "execute", "inspect", "verify")
        missing = ", ".join(member for member in members if not hasattr(tool, member))
        raise ToolInvalid(f"{place}: {tool!r} is no tool, it has no {missing}")
    for fault in _faults(tool):
        raise ToolInvalid(f"{place}: {tool.name}: {fault}")
    return tool


def _faults(tool: Tool) -> Iterable[str]:
    if not _TOOL_NAME.fullmatch(tool.name):
        yield "a name is lower-case words with dots between them"
    arguments: object = tool.Arguments
    if not (isinstance(arguments, type) and issubclass(arguments, BaseModel)):
        yield "Arguments must be a pydantic model"
