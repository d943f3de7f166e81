"""The claim's view of limits: their rows, locked last of all locks, and what is in flight while they are held."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from checkpoint.rows import statements


@dataclass(slots=True)
class LimitRow:
    """One tool's limit; see `models.Limit`."""

    tool: str
    place_at: datetime | None
    paced_to: datetime | None


_ADD = "INSERT INTO checkpoint_limit (tool) SELECT unnest(%(tools)s::text[]) ORDER BY 1 ON CONFLICT DO NOTHING"
_LOCK = "SELECT tool, place_at, paced_to FROM checkpoint_limit WHERE tool = ANY(%(tools)s) ORDER BY tool FOR UPDATE"
_LOCK_FREE = f"{_LOCK} SKIP LOCKED"

_IN_FLIGHT = """
SELECT tool_version.name, count(*) FROM checkpoint_toolversion AS tool_version
JOIN checkpoint_step AS step ON step.tool_version_id = tool_version.id AND step.status = 'started'
WHERE tool_version.name = ANY(%(tools)s) GROUP BY tool_version.name
"""
_IN_FLIGHT_OF_WORKFLOWS = """
SELECT workflow_id, count(*) FROM checkpoint_step
WHERE workflow_id = ANY(%(workflows)s) AND status = 'started' GROUP BY workflow_id
"""
_WRITE = """
UPDATE checkpoint_limit AS stored SET place_at = changed.place_at, paced_to = changed.paced_to
FROM json_to_recordset(%(limits)s) AS changed(tool text, place_at timestamptz, paced_to timestamptz)
WHERE stored.tool = changed.tool
"""


def lock(tools: Iterable[str], *, wait: bool) -> dict[str, LimitRow]:
    """Locks the limits of these tools, in the order of their names.

    Args:
        wait: otherwise those that others hold are left out. Whoever holds one already must not wait for another.
    """
    wanted = sorted(set(tools))
    rows = _rows(wanted, wait=wait)
    if wait and len(rows) < len(wanted):
        statements.change(_ADD, tools=wanted)
        rows = _rows(wanted, wait=wait)
    return rows


def _rows(tools: Sequence[str], *, wait: bool) -> dict[str, LimitRow]:
    return {tool: LimitRow(tool, *more) for tool, *more in statements.fetch(_LOCK if wait else _LOCK_FREE, tools=tools)}


def in_flight(tools: Iterable[str]) -> dict[str, int]:
    """How many steps of each tool are started, whatever its version; counted after the limits were locked."""
    return dict(statements.fetch(_IN_FLIGHT, tools=list(tools)))


def in_flight_of_workflows(workflows: Iterable[uuid.UUID]) -> dict[uuid.UUID, int]:
    """How many steps of each of these (locked) workflows are started."""
    return dict(statements.fetch(_IN_FLIGHT_OF_WORKFLOWS, workflows=list(workflows)))


def write(limits: Sequence[LimitRow]) -> None:
    """Stores what changed of locked limits."""
    statements.change(_WRITE, limits=statements.rows(limits))
