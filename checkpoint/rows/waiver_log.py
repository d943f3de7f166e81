"""The sole writer of waivers, in sets."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from checkpoint.models.identifiers import uuid7
from checkpoint.models.waiver import WaiverCause
from checkpoint.rows import statements


@dataclass(frozen=True, slots=True)
class WaiverRow:
    """One decision of the policy; see `models.Waiver`."""

    id: uuid.UUID
    step_id: uuid.UUID
    policy_version_id: uuid.UUID
    cause: str
    reason: str
    waived_at: datetime


_INSERT = """
INSERT INTO checkpoint_waiver (id, step_id, policy_version_id, cause, reason, waived_at)
SELECT id, step_id, policy_version_id, cause, reason, waived_at FROM json_to_recordset(%(waivers)s) AS waiver(
  id uuid, step_id uuid, policy_version_id uuid, cause text, reason text, waived_at timestamptz)
"""
_WAIVED = """
SELECT step.name FROM checkpoint_step AS step JOIN checkpoint_waiver AS waiver ON waiver.step_id = step.id
WHERE step.workflow_id = %(workflow)s AND step.name = ANY(%(names)s) ORDER BY step.position, step.name
"""


def waive(
    step_id: uuid.UUID, cause: WaiverCause, reason: str, *, policy_version_id: uuid.UUID, now: datetime
) -> WaiverRow:
    """A new waiver, not yet stored."""
    return WaiverRow(uuid7(), step_id, policy_version_id, cause.value, reason, now)


def insert(waivers: Sequence[WaiverRow]) -> None:
    """Stores new waivers; their steps have ended already."""
    statements.change(_INSERT, waivers=statements.rows(waivers))


def waived_among(workflow_id: uuid.UUID, names: Iterable[str]) -> list[str]:
    """Which of these steps of a workflow were waived, in the plan's order."""
    return [name for (name,) in statements.fetch(_WAIVED, workflow=workflow_id, names=sorted(set(names)))]
