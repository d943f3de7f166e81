"""The sole writer of attempts, in sets. An attempt is inserted before anything is sent and ended once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from checkpoint.actions import AttemptFacts
from checkpoint.models.attempt import Attempt, Ending
from checkpoint.models.identifiers import uuid7
from checkpoint.rows import statements

# For so long the host of a dead worker is given to say what the worker's flight recorder holds.
WAIT_FOR_WORD = timedelta(seconds=settings.CHECKPOINT_FLIGHT_WORD_SECONDS)


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
        return facts_of(self)

    def end(self, ending: Ending, *, applied: bool | None, detail: str, now: datetime) -> None:
        """Ends it, once: a later word on how it ended does not overwrite the first."""
        if self.ended_at is None:
            self.ended_at, self.ending, self.detail = now, ending.value, detail[:2000]
        if self.applied is None:
            self.applied = applied


def facts_of(attempt: AttemptRow | Attempt) -> AttemptFacts:
    """What the decision needs of an attempt, as a row or as the model."""
    returned = attempt.ending in (Ending.RECEIPT, Ending.REFUSED, Ending.UNKNOWN)
    word_until = attempt.ended_at + WAIT_FOR_WORD if attempt.ended_at and attempt.ending == Ending.LOST else None
    return AttemptFacts(attempt.started_at, attempt.deadline_at, returned, attempt.applied, word_until)


_COLUMNS = "id, step_id, number, fence, worker_id, started_at, deadline_at, ended_at, ending, applied, detail"
_RECORDS = """json_to_recordset(%(attempts)s) AS attempt(
  id uuid, step_id uuid, number int, fence bigint, worker_id uuid, started_at timestamptz, deadline_at timestamptz,
  ended_at timestamptz, ending text, applied bool, detail text)"""

_OF_STEPS = f"SELECT {_COLUMNS} FROM checkpoint_attempt WHERE step_id = ANY(%(steps)s) ORDER BY step_id, number"
_INSERT = f"INSERT INTO checkpoint_attempt ({_COLUMNS}) SELECT {_COLUMNS} FROM {_RECORDS}"
_END = f"""
UPDATE checkpoint_attempt AS stored SET ended_at = attempt.ended_at, ending = attempt.ending,
  applied = attempt.applied, detail = attempt.detail
FROM {_RECORDS} WHERE stored.id = attempt.id
"""


def begin(
    step_id: uuid.UUID, number: int, fence: int, worker_id: uuid.UUID, *, now: datetime, deadline_at: datetime
) -> AttemptRow:
    """A new attempt, not yet stored."""
    return AttemptRow(uuid7(), step_id, number, fence, worker_id, now, deadline_at)


def of_steps(step_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, list[AttemptRow]]:
    """All attempts of the steps, in order; a step without attempts is left out."""
    found: dict[uuid.UUID, list[AttemptRow]] = {}
    for row in statements.fetch(_OF_STEPS, steps=list(step_ids)):
        found.setdefault(row[1], []).append(AttemptRow(*row))
    return found


def insert(attempts: Sequence[AttemptRow]) -> None:
    """Stores new attempts."""
    statements.change(_INSERT, attempts=statements.rows(attempts))


def store_endings(attempts: Sequence[AttemptRow]) -> None:
    """Stores how attempts ended and whether they took effect."""
    statements.change(_END, attempts=statements.rows(attempts))
