"""Which worker processes live: each holds a session lock, and `pg_locks` shows it."""

from __future__ import annotations

import uuid

from django.db import connection

# The key is the high and low half of a bigint in `pg_locks`, and such a lock has objsubid 1.
_DEAD = """
SELECT worker.id FROM checkpoint_workerprocess AS worker
WHERE worker.ended_at IS NULL
  AND checkpoint_now() - pg_postmaster_start_time() > %s
  AND NOT EXISTS (
    SELECT FROM pg_locks AS lock
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (lock.classid::bigint << 32 | lock.objid::bigint) = worker.lock_key)
"""

# After the server's start every session lock is gone until the workers have reconnected.
RECONNECT_GRACE = "5 seconds"


def dead() -> list[uuid.UUID]:
    """Processes that are registered as running and hold their lock no more. Empty shortly after the server's start."""
    with connection.cursor() as cursor:
        cursor.execute(_DEAD, [RECONNECT_GRACE])
        return [worker for (worker,) in cursor.fetchall()]


def any_has(tool: str) -> bool:
    """Whether a process that has not ended can run the tool, given as name@version."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM checkpoint_workerprocess WHERE ended_at IS NULL AND %s = ANY(tools))", [tool]
        )
        return bool(cursor.fetchone()[0])


def tools_of_all() -> frozenset[str]:
    """The tools, as name@version, that the processes can run that have not ended."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT unnest(tools) FROM checkpoint_workerprocess WHERE ended_at IS NULL")
        return frozenset(tool for (tool,) in cursor.fetchall())
