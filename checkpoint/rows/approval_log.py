"""The hot path's reads and writes of approvals, in sets. Who may answer them is not known here."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from checkpoint.errors import LeaseLost
from checkpoint.gates.gating import ApprovalFacts, Pins
from checkpoint.gates.rulings import OnTimeout, Scope
from checkpoint.rows import statements
from checkpoint.states import ApprovalStatus


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """The newest approval of a step. `on_timeout` is what the policy said when it was asked for."""

    id: uuid.UUID
    step_id: uuid.UUID
    on_timeout: OnTimeout
    facts: ApprovalFacts


@dataclass(frozen=True, slots=True)
class NewApproval:
    """A request, or one step's share of it, not yet stored; see `models.Approval`. `rule` is JSON text."""

    id: uuid.UUID
    workflow_id: uuid.UUID
    step_id: uuid.UUID
    part_of_id: uuid.UUID | None
    plan_hash: str
    rule: str
    arguments_hash: str
    policy_version_id: uuid.UUID
    tool_version_id: uuid.UUID
    prompt_version: str
    newest_tool_id: uuid.UUID
    requested_at: datetime
    expires_at: datetime


_NEWEST = """
SELECT DISTINCT ON (step_id) id, step_id, status, arguments_hash, policy_version_id, tool_version_id,
  rule->>'scope', prompt_version, newest_tool_id, rule->>'on_timeout', expires_at,
  expires_at + make_interval(secs => (rule->>'wait_seconds')::float8), usable_from
FROM checkpoint_approval WHERE step_id = ANY(%(steps)s) ORDER BY step_id, id DESC
"""
_INSERT = """
INSERT INTO checkpoint_approval (id, workflow_id, step_id, part_of_id, plan_hash, status, rule, arguments_hash,
  policy_version_id, tool_version_id, prompt_version, newest_tool_id, requested_at, expires_at, closing)
SELECT id, workflow_id, step_id, part_of_id, plan_hash, 'pending', rule::jsonb, arguments_hash, policy_version_id,
  tool_version_id, prompt_version, newest_tool_id, requested_at, expires_at, ''
FROM json_to_recordset(%(requests)s) AS request(id uuid, workflow_id uuid, step_id uuid, part_of_id uuid,
  plan_hash text, rule text, arguments_hash text, policy_version_id uuid, tool_version_id uuid,
  prompt_version text, newest_tool_id uuid, requested_at timestamptz, expires_at timestamptz)
"""
# The guard is in the statement: consumed is what is approved, still valid and about exactly what is sent.
_CONSUME = """
UPDATE checkpoint_approval SET status = 'consumed', closed_at = %(now)s
WHERE id = %(id)s AND status = 'approved' AND arguments_hash = ANY(%(hashes)s::text[])
  AND expires_at + make_interval(secs => (rule->>'wait_seconds')::float8) > %(now)s
"""
_ALLOW_UNANSWERED = "UPDATE checkpoint_approval SET status = 'approved' WHERE id = %(id)s AND status = 'pending'"
_CONSUME_UNANSWERED = """
UPDATE checkpoint_approval SET status = 'consumed', closed_at = %(now)s, closing = %(how)s
WHERE id = %(id)s AND status = 'approved'
"""
# The shares of a plan end together: what is left of it is not what was asked for.
_END = """
UPDATE checkpoint_approval SET status = %(status)s, closed_at = %(now)s, closing = %(how)s
WHERE status IN ('pending', 'approved', 'returned') AND id IS DISTINCT FROM %(spare)s AND coalesce(part_of_id, id) IN (
  SELECT coalesce(part_of_id, id) FROM checkpoint_approval
  WHERE step_id = ANY(%(steps)s) AND status IN ('pending', 'approved', 'returned'))
"""


def newest_of_steps(step_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, ApprovalRow]:
    """The newest approval of each step that ever had one."""
    found = statements.fetch(_NEWEST, steps=list(step_ids))
    return {row[1]: _row(*row) for row in found}


def _row(
    approval_id: uuid.UUID,
    step_id: uuid.UUID,
    status: str,
    content_hash: str,
    policy_version_id: uuid.UUID,
    tool_version_id: uuid.UUID,
    scope: str,
    prompt_version: str | None,
    newest_tool_id: uuid.UUID | None,
    on_timeout: str,
    *times: datetime,
) -> ApprovalRow:
    pins = Pins(content_hash, policy_version_id, tool_version_id, Scope(scope), prompt_version, newest_tool_id)
    return ApprovalRow(approval_id, step_id, OnTimeout(on_timeout), ApprovalFacts(ApprovalStatus(status), pins, *times))


def insert(requests: Sequence[NewApproval]) -> None:
    """Stores new requests; of a plan, the row that is asked about comes first."""
    statements.change(_INSERT, requests=statements.rows(requests))


def consume(approval: ApprovalRow, hashes: Sequence[str], *, now: datetime) -> None:
    """Uses an approval up, in the transaction that starts the step.

    Args:
        hashes: of what is sent: its arguments, and where the approval is a plan's, their template.

    Raises:
        LeaseLost: it is no longer what was read, although its workflow is locked.
    """
    _expect(statements.change(_CONSUME, id=approval.id, hashes=list(hashes), now=now))


def consume_unanswered(approval: ApprovalRow, how: str, *, now: datetime) -> None:
    """Uses up a request that nobody answered, where the policy lets that count as approval. Raises as `consume`."""
    _expect(statements.change(_ALLOW_UNANSWERED, id=approval.id))
    _expect(statements.change(_CONSUME_UNANSWERED, id=approval.id, how=how, now=now))


def _expect(changed: int) -> None:
    if changed != 1:
        raise LeaseLost("an approval changed under its workflow's lock; nothing was started")


def end(
    step_ids: Iterable[uuid.UUID], status: ApprovalStatus, how: str, *, now: datetime, spare: uuid.UUID | None = None
) -> None:
    """Ends whatever approval of these steps is open or unused, with the other shares of its plan, but not `spare`."""
    statements.change(_END, steps=list(step_ids), status=status.value, how=how, now=now, spare=spare)
