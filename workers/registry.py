"""Tools: what one is, and where they are found.

A tool comes from any installed Django app's `tools.py` (a list named `TOOLS`) or from an entry point of the group
`checkpoint.tools`, so that a package adds tools without touching this one.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, ClassVar, Protocol, runtime_checkable

from django.apps import apps
from pydantic import BaseModel

from checkpoint.contracts import Variant
from checkpoint.outcomes import Facts, Inspection, NotApplied, Receipt, Verification

ENTRY_POINT_GROUP = "checkpoint.tools"


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


@dataclass(frozen=True)
class Call:
    """What a tool is told about the call it makes.

    Attributes:
        key: the idempotency key: the same on every attempt, for ever.
        fence: rises at every acquisition, for systems that can check it.
        attempt: number of this attempt, from 1.
        operation_id: the provider's id, once a receipt was recorded.
        facts: the receipt's facts, once recorded (for `verify`).
        deadline: hold to it; check it immediately before the first byte.
    """

    workflow_id: str
    step_name: str
    key: str
    fence: int
    attempt: int
    deadline: Deadline
    operation_id: str | None = None
    facts: Facts | None = None


@runtime_checkable
class Tool(Protocol):
    """One kind of effect. `docs/writing-a-tool.md` shows a complete one.

    `inspect` and `verify` are called only where the variant's contract says that they exist.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    summary: ClassVar[str]
    Arguments: ClassVar[type[BaseModel]]

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


def label(tool: Tool) -> str:
    """How workers and steps name a tool's version: name@version."""
    return f"{tool.name}@{tool.version}"


class ToolNameTaken(Exception):
    """Two different tools claim one name and version."""


def discover() -> dict[str, Tool]:
    """Every tool that this process can run, by name."""
    found: dict[str, Tool] = {}
    for tool in [*_from_installed_apps(), *_from_entry_points()]:
        if found.setdefault(tool.name, tool) is not tool:
            raise ToolNameTaken(f"two tools are named {tool.name!r}: rename one of them")
    return found


def _from_installed_apps() -> Iterable[Tool]:
    for app in apps.get_app_configs():
        module_name = f"{app.name}.tools"
        if importlib.util.find_spec(module_name) is not None:
            yield from getattr(importlib.import_module(module_name), "TOOLS", [])


def _from_entry_points() -> Iterable[Tool]:
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        yield entry_point.load()()
