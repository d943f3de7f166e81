"""The sole writer of attempts, in sets. An attempt is inserted before anything is sent and ended once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from checkpoint.decide import AttemptFacts
from checkpoint.models.attempt import Ending
from checkpoint.models.identifiers import uuid7


@dataclass(slots=True)
class AttemptRow:
    """One attempt; see `models.Attempt`."""

    id: uuid.UUID
    step_id: uuid.UUID
    number: int
    fence: int
    worker_id: uuid.UUID
    started_at: datetime
    deadline_at: datetime
    ended_at: datetime | None = None
    ending: str = ""
    applied: bool | None = None
    detail: str = ""

    @property
    def facts(self) -> AttemptFacts:
        """What the decision needs of it."""
        returned = self.ending in (Ending.RECEIPT, Ending.REFUSED, Ending.UNKNOWN)
        return AttemptFacts(self.started_at, self.deadline_at, returned, self.applied)

    def end(self, ending: Ending, *, applied: bool | None, detail: str, now: datetime) -> None:
        """Ends it, once: a later word on how it ended does not overwrite the first."""
        if self.ended_at is None:
            self.ended_at, self.ending, self.detail = now, ending.value, detail[:2000]
        if self.applied is None:
            self.applied = applied


def begin(
    step_id: uuid.UUID, number: int, fence: int, worker_id: uuid.UUID, *, now: datetime, deadline_at: datetime
) -> AttemptRow:
    """A new attempt, not yet stored."""
    return AttemptRow(uuid7(), step_id, number, fence, worker_id, now, deadline_at)


def of_steps(step_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, list[AttemptRow]]:
    """All attempts of the steps, in order; a step without attempts is left out."""
    found: dict[uuid.UUID, list[AttemptRow]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, step_id, number, fence, worker_id, started_at, deadline_at, ended_at, ending, applied, detail"
            " FROM checkpoint_attempt WHERE step_id = ANY(%s) ORDER BY step_id, number",
            [list(step_ids)],
        )
        for row in cursor.fetchall():
            found.setdefault(row[1], []).append(AttemptRow(*row))
    return found


def insert(attempts: Sequence[AttemptRow]) -> None:
    """Stores new attempts."""
    columns = ("id", "step_id", "number", "fence", "worker_id", "started_at", "deadline_at")
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO checkpoint_attempt ({', '.join(columns)}, ending, detail)"
            " SELECT *, '', '' FROM unnest(%s::uuid[], %s::uuid[], %s::int[], %s::bigint[], %s::uuid[],"
            " %s::timestamptz[], %s::timestamptz[])",
            [[getattr(attempt, column) for attempt in attempts] for column in columns],
        )


def store_endings(attempts: Sequence[AttemptRow]) -> None:
    """Stores how attempts ended and whether they took effect."""
    columns = ("id", "ended_at", "ending", "applied", "detail")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE checkpoint_attempt SET ended_at = the.ended_at, ending = the.ending, applied = the.applied,"
            " detail = the.detail FROM unnest(%s::uuid[], %s::timestamptz[], %s::text[], %s::bool[], %s::text[])"
            " AS the(id, ended_at, ending, applied, detail) WHERE checkpoint_attempt.id = the.id",
            [[getattr(attempt, column) for attempt in attempts] for column in columns],
        )
