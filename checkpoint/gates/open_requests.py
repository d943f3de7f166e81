"""Asks the gate again about requests for approval that are open, because another policy is in force now."""

from __future__ import annotations

import uuid

from checkpoint import doorbell, transitions
from checkpoint.people import ENGINE
from checkpoint.rows import statements, step_rows
from checkpoint.transactions import one_transaction

AT_ONCE = 200  # workflows in one transaction

_FIRST = uuid.UUID(int=0)
_OVERTAKEN = """
SELECT DISTINCT workflow_id FROM checkpoint_approval
WHERE status = 'pending' AND workflow_id > %(after)s
  AND policy_version_id <> (SELECT id FROM checkpoint_policyversion ORDER BY number DESC LIMIT 1)
ORDER BY workflow_id LIMIT %(limit)s
"""
_STEPS = "SELECT step_id FROM checkpoint_approval WHERE status = 'pending' AND workflow_id = ANY(%(workflows)s)"


def reconsider() -> None:
    """Wakes every step that waits for an answer under an earlier policy: at its next turn it is asked anew, or goes on.

    Several transactions: whoever answers meanwhile is not held up, and what is not woken is asked again at its start.
    """
    after: uuid.UUID | None = _FIRST
    while after is not None:
        after = _wake(after)


@one_transaction
def _wake(after: uuid.UUID) -> uuid.UUID | None:
    found: list[uuid.UUID] = [row[0] for row in statements.fetch(_OVERTAKEN, after=after, limit=AT_ONCE)]
    if not found:
        return None
    changes = transitions.lock(found, actor=ENGINE)
    waiting = [row[0] for row in statements.fetch(_STEPS, workflows=found)]
    for row in step_rows.of_ids(waiting).values():
        if row.next_at is not None:
            changes.touch(row).next_at = None
    changes.finish()
    doorbell.ring_on_commit()
    return max(found)
