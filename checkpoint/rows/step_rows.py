"""The hot path's view of a step: loaded, changed in memory and written back in sets.

`transitions.Changes` writes these rows; pages and single commands use the models.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from checkpoint.rows import statements
from checkpoint.states import StepStatus


@dataclass(slots=True)
class StepRow:
    """The columns of a step in the order in which they are selected. See `models.Step` for their meaning."""

    id: uuid.UUID
    workflow_id: uuid.UUID
    position: int
    name: str
    tool_version_id: uuid.UUID
    variant: str
    template: str
    arguments: str | None
    arguments_hash: str
    idempotency_key: str
    intent_name: str
    waits_for_id: uuid.UUID | None
    compensates_id: uuid.UUID | None
    by_agent: bool
    status: StepStatus
    version: int
    standing: str
    receipt_id: uuid.UUID | None
    operation_id: str
    fence: int
    lease_holder_id: uuid.UUID | None
    lease_until: datetime | None
    activity: str
    attempt_count: int
    attempts_allowed: int
    inspection_count: int
    verification_count: int
    next_at: datetime | None
    committed_at: datetime | None
    verified_at: datetime | None

    def __post_init__(self) -> None:
        self.status = StepStatus(self.status)

    @property
    def subject(self) -> str:
        """How the audit trail names it."""
        return f"step {self.name}"

    @property
    def arguments_value(self) -> Any:
        """The resolved arguments as JSON values."""
        return json.loads(self.arguments or "null")


COLUMNS = tuple(column.name for column in fields(StepRow))

# Columns that a change may write, with their PostgreSQL types. What is written ahead is written once, by `prepare`.
WRITABLE = {
    "tool_version_id": "uuid",
    "waits_for_id": "uuid",
    "variant": "text",
    "status": "text",
    "version": "int",
    "standing": "text",
    "receipt_id": "uuid",
    "operation_id": "text",
    "fence": "bigint",
    "lease_holder_id": "uuid",
    "lease_until": "timestamptz",
    "activity": "text",
    "attempt_count": "int",
    "attempts_allowed": "int",
    "inspection_count": "int",
    "verification_count": "int",
    "next_at": "timestamptz",
    "committed_at": "timestamptz",
    "verified_at": "timestamptz",
}

_SELECT = "SELECT " + ", ".join(f"step.{column}" for column in COLUMNS) + " FROM checkpoint_step AS step"

_OF_IDS = f"{_SELECT} WHERE step.id = ANY(%(ids)s)"
_OF_WORKFLOWS = (
    f"{_SELECT} WHERE step.workflow_id = ANY(%(ids)s) AND step.status = ANY(%(statuses)s::text[]) ORDER BY step.id"
)

# The owner of the named intent that a step waits for has ended, or has passed it on.
OWNER_ENDED = """
EXISTS (SELECT FROM checkpoint_intent AS intent JOIN checkpoint_step AS owner ON owner.id = intent.owner_id
        WHERE intent.id = step.waits_for_id AND owner.status IN ('verified', 'abandoned', 'superseded'))
"""

# A step may be acted on when it is at the front of its plan, nobody holds it, its wait is over (also that for another
# step's effect), no question about it is open and the agent is not to change it. A workflow that is winding down only
# settles what is in the air.
# What an agent carries out itself is left to it, but for a request for approval about it, whose time may be over.
# `seen` and `full` are what the turn has looked at already, and whose tool has no place left.
_READY = f"""
WITH front AS (
  SELECT step.workflow_id, min(step.position) AS position
  FROM checkpoint_step AS step
  WHERE step.workflow_id = ANY(%(workflows)s) AND step.status NOT IN ('verified', 'superseded', 'abandoned')
  GROUP BY step.workflow_id)
{_SELECT}
JOIN front ON front.workflow_id = step.workflow_id AND front.position = step.position
JOIN checkpoint_workflow AS workflow ON workflow.id = step.workflow_id
WHERE (step.status IN ('started', 'committed')
       OR step.status IN ('planned', 'prepared', 'failed') AND NOT workflow.winding_down)
  AND coalesce(greatest(step.lease_until, step.next_at) <= %(now)s, true)
  AND (step.waits_for_id IS NULL OR {OWNER_ENDED})
  AND NOT EXISTS (SELECT FROM checkpoint_case WHERE step_id = step.id AND status = 'open')
  AND NOT EXISTS (SELECT FROM checkpoint_approval WHERE step_id = step.id AND status = 'returned')
  AND NOT (step.by_agent AND step.status IN ('prepared', 'failed') AND NOT EXISTS (
    SELECT FROM checkpoint_approval WHERE step_id = step.id AND status = 'pending'))
  AND step.id <> ALL(%(seen)s) AND step.tool_version_id <> ALL(%(full)s)
ORDER BY step.workflow_id, step.id LIMIT %(limit)s
"""

_WRITE = f"""
UPDATE checkpoint_step AS step SET {", ".join(f"{column} = change.{column}" for column in WRITABLE)}
FROM json_to_recordset(%(changes)s) AS change(
  id uuid, seen_version int, held_fence bigint, {", ".join(f"{name} {kind}" for name, kind in WRITABLE.items())})
WHERE step.id = change.id AND step.version = change.seen_version AND step.fence = change.held_fence
"""


_values = attrgetter(*WRITABLE)


@dataclass(frozen=True, slots=True)
class Guard:
    """The version and the fence that a row had when it was read; it is written only where they still hold."""

    version: int
    fence: int


def of_ids(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, StepRow]:
    """The steps with these ids."""
    return {row.id: row for row in _rows(_OF_IDS, ids=list(ids))}


def of_workflows(ids: Iterable[uuid.UUID], statuses: Iterable[StepStatus]) -> list[StepRow]:
    """The steps of these (locked) workflows that have one of the statuses."""
    return _rows(_OF_WORKFLOWS, ids=list(ids), statuses=[status.value for status in statuses])


def ready(
    workflows: Iterable[uuid.UUID],
    *,
    now: datetime,
    limit: int,
    seen: Iterable[uuid.UUID] = (),
    full: Iterable[uuid.UUID] = (),
) -> list[StepRow]:
    """Steps of these (locked) workflows whose turn it is.

    Args:
        seen: steps that are left out.
        full: tool versions of which no step is wanted.
    """
    return _rows(_READY, workflows=list(workflows), now=now, limit=limit, seen=list(seen), full=list(full))


def write(changes: Sequence[StepRow], guards: Sequence[Guard]) -> statements.Sent:
    """Writes the rows whose guards hold; the answer says how many were written."""
    records = [
        {"id": row.id, "seen_version": guard.version, "held_fence": guard.fence}
        | dict(zip(WRITABLE, _values(row), strict=True))
        for row, guard in zip(changes, guards, strict=True)
    ]
    return statements.send(_WRITE, changes=statements.rows(records))


def _rows(statement: str, **parameters: Any) -> list[StepRow]:
    return [StepRow(*row) for row in statements.fetch(statement, **parameters)]
