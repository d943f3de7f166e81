"""The marker: one row a key in the foreign database, written in the same transaction as the effect.

The row is also the lock. An execution inserts it first, so a second one under the same key, and every lookup, waits for
the first one's end. A lookup that finds no effect leaves its fence in the row, and an execution under an older fence
then refuses itself: after an answer "absent", nothing that was sent before can still commit, however late it comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from checkpoint.canonical import canonical, sha256_hex
from checkpoint.outcomes import Receipt
from workers.registry import Call
from workers.tools.sql_arguments import SqlArguments
from workers.tools.sql_session import Connection

_TOUCH = """
    INSERT INTO checkpoint.effects AS there (key, arguments_sha256, fence, workflow, step)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (key) DO UPDATE SET fence = greatest(there.fence, excluded.fence)
    RETURNING arguments_sha256, fence, done_at, transaction_id, row_count, returned
"""
_READ = """
    SELECT arguments_sha256, fence, done_at, transaction_id, row_count, returned
    FROM checkpoint.effects WHERE key = $1
"""
_COMPLETE = """
    UPDATE checkpoint.effects
    SET done_at = clock_timestamp(), transaction_id = pg_current_xact_id()::text, row_count = $2, returned = $3
    WHERE key = $1 AND done_at IS NULL AND fence = $4
    RETURNING arguments_sha256, fence, done_at, transaction_id, row_count, returned
"""


@dataclass(frozen=True)
class Marker:
    """The row of a key.

    Attributes:
        done_at: foreign time of the effect; None while there is none.
        transaction_id: of the foreign transaction that made it.
    """

    arguments_sha256: str
    fence: int
    done_at: datetime | None
    transaction_id: str | None
    row_count: int | None
    returned: Any

    def receipt(self, arguments: SqlArguments) -> Receipt:
        """What is known of the effect; it has to be done."""
        assert self.done_at is not None
        facts: dict[str, Any] = {"database": arguments.database, "rows": self.row_count, "at": self.done_at.isoformat()}
        if self.returned is not None:
            facts["returned"] = self.returned
        return Receipt(self.transaction_id, facts, arguments_match=self.arguments_sha256 == hash_of(arguments))


def hash_of(arguments: SqlArguments) -> str:
    """SHA-256 of the arguments' canonical text."""
    return sha256_hex(canonical(arguments.model_dump(mode="json")))


def touch(connection: Connection, arguments: SqlArguments, call: Call) -> Marker:
    """Locks the key's row until the transaction ends, making it if need be, and leaves the call's fence in it."""
    values = [call.key, hash_of(arguments), call.fence, call.workflow_id, call.step_name]
    row = connection.execute(_TOUCH, values).fetchone()
    assert row is not None
    return Marker(*row)


def read(connection: Connection, key: str) -> Marker | None:
    """The key's row as it is committed."""
    row = connection.execute(_READ, [key]).fetchone()
    return None if row is None else Marker(*row)


def complete(connection: Connection, call: Call, *, row_count: int, returned: list[Any]) -> Marker | None:
    """Writes the effect into the row that `touch` locked; None where the statement took that row away."""
    kept = Jsonb(returned) if returned else None
    row = connection.execute(_COMPLETE, [call.key, row_count, kept, call.fence]).fetchone()
    return None if row is None else Marker(*row)
