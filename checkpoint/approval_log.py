"""The hot path's reads and writes of approvals, in sets. Who may answer them is not known here."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from checkpoint import statements
from checkpoint.errors import LeaseLost
from checkpoint.gating import ApprovalFacts, Pins
from checkpoint.models.identifiers import uuid7
from checkpoint.rulings import ApprovalRule
from checkpoint.states import ApprovalStatus
from checkpoint.step_rows import StepRow


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """The newest approval of a step."""

    id: uuid.UUID
    step_id: uuid.UUID
    facts: ApprovalFacts


@dataclass(frozen=True, slots=True)
class NewApproval:
    """A request, not yet stored; see `models.Approval`."""

    id: uuid.UUID
    workflow_id: uuid.UUID
    step_id: uuid.UUID
    rule: str
    arguments_hash: str
    policy_version_id: uuid.UUID
    tool_version_id: uuid.UUID
    requested_at: datetime
    expires_at: datetime


_NEWEST = """
SELECT DISTINCT ON (step_id) id, step_id, status, arguments_hash, policy_version_id, tool_version_id, expires_at,
  usable_from
FROM checkpoint_approval WHERE step_id = ANY(%(steps)s) ORDER BY step_id, id DESC
"""
_INSERT = """
INSERT INTO checkpoint_approval (id, workflow_id, step_id, status, rule, arguments_hash, policy_version_id,
  tool_version_id, requested_at, expires_at, closing)
SELECT id, workflow_id, step_id, 'pending', rule::jsonb, arguments_hash, policy_version_id, tool_version_id,
  requested_at, expires_at, ''
FROM json_to_recordset(%(requests)s) AS request(id uuid, workflow_id uuid, step_id uuid, rule text,
  arguments_hash text, policy_version_id uuid, tool_version_id uuid, requested_at timestamptz, expires_at timestamptz)
"""
# The guard is in the statement: consumed is what is approved, unexpired and about exactly these arguments.
_CONSUME = """
UPDATE checkpoint_approval SET status = 'consumed', closed_at = %(now)s
WHERE id = %(id)s AND status = 'approved' AND arguments_hash = %(arguments_hash)s AND expires_at > %(now)s
"""
_END = """
UPDATE checkpoint_approval SET status = %(status)s, closed_at = %(now)s, closing = %(how)s
WHERE step_id = ANY(%(steps)s) AND status IN ('pending', 'approved')
"""


def newest_of_steps(step_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, ApprovalRow]:
    """The newest approval of each step that ever had one."""
    found = statements.fetch(_NEWEST, steps=list(step_ids))
    return {row[1]: _row(*row) for row in found}


def _row(
    approval_id: uuid.UUID,
    step_id: uuid.UUID,
    status: str,
    arguments_hash: str,
    policy_version_id: uuid.UUID,
    tool_version_id: uuid.UUID,
    expires_at: datetime,
    usable_from: datetime | None,
) -> ApprovalRow:
    pins = Pins(arguments_hash, policy_version_id, tool_version_id)
    return ApprovalRow(approval_id, step_id, ApprovalFacts(ApprovalStatus(status), pins, expires_at, usable_from))


def request(row: StepRow, rule: ApprovalRule, policy_version_id: uuid.UUID, *, now: datetime) -> NewApproval:
    """A new request for a prepared step, not yet stored."""
    return NewApproval(
        uuid7(),
        row.workflow_id,
        row.id,
        statements.rows([rule.to_json()])[1:-1],
        row.arguments_hash,
        policy_version_id,
        row.tool_version_id,
        now,
        now + timedelta(seconds=rule.expires),
    )


def insert(requests: Sequence[NewApproval]) -> None:
    """Stores new requests."""
    statements.change(_INSERT, requests=statements.rows(requests))


def consume(approval: ApprovalRow, row: StepRow, *, now: datetime) -> None:
    """Uses an approval up, in the transaction that starts the step.

    Raises:
        LeaseLost: it is no longer what was read, although its workflow is locked.
    """
    if statements.change(_CONSUME, id=approval.id, arguments_hash=row.arguments_hash, now=now) != 1:
        raise LeaseLost(f"the approval of step {row.name} changed under its lock; nothing was started")


def end(step_ids: Iterable[uuid.UUID], status: ApprovalStatus, how: str, *, now: datetime) -> None:
    """Ends whatever approval of these steps is open or unused."""
    statements.change(_END, steps=list(step_ids), status=status.value, how=how, now=now)
