"""The sole writer of a bulk job's own audit stream, and of its items' results. All require an open transaction.

Each answer is audited in its workflow too, like every other; this stream says that they belong together, and why.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from approvals.bulk.states import BulkResult
from approvals.models import BulkJob
from checkpoint import audit, clock
from checkpoint.people import Actor

CHANNEL = "bulk"


@dataclass(frozen=True)
class Totals:
    """How many items have which result. They add up to the job's count at every moment."""

    pending: int
    done: int
    refused: int
    moved: int

    def as_json(self) -> dict[str, int]:
        """For the audit."""
        return asdict(self)

    @property
    def answered(self) -> int:
        """How many have a result."""
        return self.done + self.refused + self.moved


def totals(job: BulkJob) -> Totals:
    """Counted from the items, in one statement."""
    return Totals(
        **job.items.aggregate(**{result.value: Count("id", filter=Q(result=result)) for result in BulkResult})
    )


def stream(job: BulkJob) -> tuple[UUID, str]:
    """Id and name of the job's own audit stream."""
    return job.pk, f"bulk/{job.pk}"


def by_bulk(job: BulkJob) -> Actor:
    """Who answers the items: the person who started the job."""
    return Actor(job.person_name, CHANNEL)


def note(job: BulkJob, actor: Actor, verb: str, *, at: datetime | None = None, **content: Any) -> None:
    """Writes an entry about the job, or about one of its items where the content names a subject."""
    entry = {"subject": "bulk job", "reason": job.reason, **content}
    audit.append([audit.Entry(job.pk, actor, verb, **entry)], at=at or clock.now())
