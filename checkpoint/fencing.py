"""The sole writer of fences and leases. Only PostgreSQL's time judges a lease; only the fence judges a write.

The fence rises at every acquisition, for ever, also for a person's command (S43, S44, S45). A lease past its time
that nobody has taken over still writes; a write under an old fence changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection

from checkpoint.models.step import Activity
from checkpoint.rows import statements
from checkpoint.rows.step_rows import StepRow
from checkpoint.transactions import require_transaction

LEASE = timedelta(seconds=settings.CHECKPOINT_LEASE_SECONDS)


def acquire(row: StepRow, *, holder: uuid.UUID, activity: Activity, now: datetime) -> None:
    """Takes the step for one activity, under the next fence."""
    row.fence += 1
    _hold(row, holder, activity, now)


def keep(row: StepRow, *, activity: Activity, now: datetime) -> None:
    """The holder goes on with another activity under the fence it has."""
    if row.lease_holder_id is None:
        raise ValueError(f"nobody holds step {row.name}")
    _hold(row, row.lease_holder_id, activity, now)


def lend(row: StepRow, *, until: datetime) -> None:
    """The agent that holds the step has it until then: it may be silent for longer than a worker."""
    row.lease_until = until


def release(row: StepRow) -> None:
    """Nobody acts on the step any more; the fence stays."""
    row.lease_holder_id, row.lease_until, row.activity = None, None, ""


def overrule(row: StepRow) -> None:
    """A person's command or late evidence takes the step from whoever holds it: the next fence, and no lease."""
    row.fence += 1
    release(row)


def _hold(row: StepRow, holder: uuid.UUID, activity: Activity, now: datetime) -> None:
    row.lease_holder_id, row.lease_until, row.activity = holder, now + LEASE, activity.value


_RENEW_OF_AGENT = """
UPDATE checkpoint_step AS step
SET lease_until = least(checkpoint_now() + make_interval(secs => %(seconds)s), attempt.deadline_at)
FROM checkpoint_attempt AS attempt
WHERE step.id = %(step)s AND step.fence = %(fence)s AND step.lease_holder_id = %(holder)s AND step.activity = 'execute'
  AND attempt.step_id = step.id AND attempt.fence = step.fence AND attempt.deadline_at > checkpoint_now()
RETURNING step.lease_until, attempt.deadline_at
"""


def renew_of_agent_if_held(
    step_id: uuid.UUID, fence: int, *, holder: uuid.UUID, seconds: float
) -> tuple[datetime, datetime] | None:
    """Renews the lease of an agent under exactly this fence, never past the deadline of its call.

    Returns:
        Until when it holds the step, and the deadline; None where the fence has moved or the deadline is over.
    """
    require_transaction()
    found = statements.fetch(_RENEW_OF_AGENT, step=step_id, fence=fence, holder=holder, seconds=seconds)
    return found[0] if found else None


def renew_if_held(holdings: Mapping[uuid.UUID, int], *, holder: uuid.UUID) -> set[uuid.UUID]:
    """Renews the leases of steps held under exactly these fences; returns the steps that are still held.

    A row that a recording transaction has locked is skipped: that transaction ends or extends the lease itself.
    """
    require_transaction()
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH held AS (SELECT step.id FROM checkpoint_step AS step"
            "   JOIN unnest(%s::uuid[], %s::bigint[]) AS holding(id, fence) USING (id, fence)"
            "   WHERE step.lease_holder_id = %s ORDER BY step.id FOR UPDATE OF step SKIP LOCKED)"
            " UPDATE checkpoint_step SET lease_until = checkpoint_now() + make_interval(secs => %s) FROM held"
            " WHERE checkpoint_step.id = held.id RETURNING checkpoint_step.id",
            [list(holdings), list(holdings.values()), holder, LEASE.total_seconds()],
        )
        return {step for (step,) in cursor.fetchall()}
