"""Permission to act, and how it ends: verbs of the heartbeat and the sweeper, one transaction each.

After a crash here: a process whose row is written but whose lock is gone is dead; its leases end at the next check.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from django.db import connection

from checkpoint import clock, doorbell, fencing, transitions
from checkpoint.models import WorkerProcess
from checkpoint.people import ENGINE
from checkpoint.rows import step_rows
from checkpoint.transactions import one_transaction
from checkpoint.turns import live_workers

# In-flight workflows always have a waking time, so the partial index on it leads to every held step.
_HELD_BY = """
SELECT step.id, step.workflow_id FROM checkpoint_workflow AS workflow
JOIN checkpoint_step AS step ON step.workflow_id = workflow.id
WHERE workflow.wake_at IS NOT NULL AND step.lease_holder_id = ANY(%s)
"""

_LEFT_ALONE = f"""
SELECT id FROM checkpoint_workflow AS workflow
WHERE wake_at IS NULL AND status IN ('planned', 'executing', 'verifying', 'failed_retryable', 'awaiting_agent')
  AND NOT EXISTS (SELECT FROM checkpoint_case WHERE workflow_id = workflow.id AND status = 'open')
  AND NOT EXISTS (SELECT FROM checkpoint_step AS step WHERE workflow_id = workflow.id
                  AND step.waits_for_id IS NOT NULL AND NOT {step_rows.OWNER_ENDED})
LIMIT 1000
"""


@one_transaction
def register(worker: WorkerProcess) -> None:
    """Announces a process that already holds its session lock."""
    worker.save(force_insert=True)


@one_transaction
def renew(holdings: Mapping[uuid.UUID, int], *, holder: uuid.UUID) -> set[uuid.UUID]:
    """Renews leases held under exactly these fences (S44).

    Args:
        holdings: fence by step id.

    Returns:
        The steps whose lease was renewed; for the others the fence may have moved: stop, write nothing.
    """
    return fencing.renew_if_held(holdings, holder=holder)


@one_transaction
def end_process(worker_id: uuid.UUID, *, ending: str) -> int:
    """Marks a process as ended and ends its leases, so that what it held is looked at now.

    Returns:
        Number of steps that it held. 0 too if somebody else had already ended it.
    """
    return _end([worker_id], ending)


@one_transaction
def end_dead_processes() -> int:
    """Ends every process whose session lock is gone (`live_workers.dead`); returns how many."""
    dead = live_workers.dead()
    if dead:
        _end(dead, "died")
        doorbell.ring_on_commit()
    return len(dead)


@one_transaction
def wake_workflows_left_alone() -> int:
    """Finds workflows that are not terminal, ask nobody and have no waking time (S46); returns how many it woke."""
    with connection.cursor() as cursor:
        cursor.execute(_LEFT_ALONE)
        left_alone = [workflow for (workflow,) in cursor.fetchall()]
    if left_alone:
        changes = transitions.lock(left_alone, actor=ENGINE)
        for workflow_id in changes.workflows:
            changes.note_workflow(workflow_id, "wake", reason="nobody was on it")
        changes.finish()
        doorbell.ring_on_commit()
    return len(left_alone)


def anything_due() -> bool:
    """Whether a workflow can be moved now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM checkpoint_workflow WHERE wake_at <= (SELECT checkpoint_now()))")
        return bool(cursor.fetchone()[0])


def _end(workers: Sequence[uuid.UUID], ending: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_HELD_BY, [list(workers)])
        held = dict(cursor.fetchall())
    changes = transitions.lock(held.values(), actor=ENGINE)
    count = 0
    for row in step_rows.of_ids(held).values():
        if row.lease_holder_id in workers:
            changes.touch(row).lease_until = changes.now
            changes.note(row, "end_lease", reason=f"its worker {ending}", details={"worker": str(row.lease_holder_id)})
            count += 1
    changes.finish()
    WorkerProcess.objects.filter(pk__in=workers, ended_at=None).update(ended_at=clock.now(), ending=ending)
    return count
