"""Where everything is, at a glance. Bounded: of large tables the newest rows are looked at, and the page says how many.

Counts are of the workflows that the person sees; what runs, and the database's health, is the installation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count
from django.db.models.functions import TruncMinute

from checkpoint import clock
from checkpoint.models import Approval, Attempt, Case, Ending
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.rows import statements
from checkpoint.states import ApprovalStatus, CaseStatus, WorkflowStatus

WORKFLOWS_LOOKED_AT = 5_000  # the newest
ATTEMPTS_LOOKED_AT = 5_000  # the newest
QUESTIONS_LOOKED_AT = 1_000  # the oldest open ones
MOST_DUE = 1_000
MINUTES = 30


@dataclass(frozen=True)
class States:
    """How many of the newest workflows are in each state; every state is named, also with none in it."""

    counts: Mapping[WorkflowStatus, int]

    @property
    def total(self) -> int:
        """How many were looked at."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Waiting:
    """Open questions that have waited for less than so long, and longer than the group before.

    Attributes:
        limit: None for the last group.
        words: what the limit means.
    """

    limit: timedelta | None
    words: str
    cases: int
    requests: int


@dataclass(frozen=True)
class Tool:
    """How the newest attempts of one tool ended."""

    name: str
    endings: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self.endings.values())


@dataclass(frozen=True)
class Activity:
    """Attempts of the last MINUTES minutes, as far as the newest ATTEMPTS_LOOKED_AT reach.

    Attributes:
        minutes: each with how many attempts started in it, the oldest first.
        since: before this nothing was looked at; None where everything was.
    """

    minutes: Sequence[tuple[datetime, int]]
    tools: Sequence[Tool]
    since: datetime | None

    @property
    def highest(self) -> int:
        """Of the fullest minute; never nothing."""
        return max([1, *(count for _, count in self.minutes)])


@dataclass(frozen=True)
class Worker:
    """A process that has not ended. `lives` says whether it holds its lock."""

    id: UUID
    name: str
    started_at: datetime
    tools: int
    in_flight: int
    lives: bool


@dataclass(frozen=True)
class Health:
    """What the database says of itself, and how far work is behind.

    Attributes:
        due: workflows on which somebody could act and nobody does; no more than MOST_DUE are counted.
        behind: seconds that the first of these has waited.
        oldest_transaction: seconds.
        workflows, entries: estimates, from the last ANALYZE.
    """

    version: str
    started_at: datetime
    connections: int
    connections_allowed: int
    oldest_transaction: float
    size: int
    workflows: int
    entries: int
    due: int
    behind: float


def states(person: Person) -> States:
    """Of the newest WORKFLOWS_LOOKED_AT workflows that the person sees."""
    newest = workflows_visible_to(person).order_by("-id").values_list("status", flat=True)
    found = Counter(newest[:WORKFLOWS_LOOKED_AT])
    return States({status: found[status] for status in WorkflowStatus})


def waiting(person: Person, limits: Sequence[tuple[timedelta, str]]) -> list[Waiting]:
    """The open questions by how long they have waited, in groups that end at the limits; one more for what is longer.

    Args:
        limits: from the shortest to the longest, each with what it means.
    """
    now, visible = clock.now(), workflows_visible_to(person)
    cases = Case.objects.filter(status=CaseStatus.OPEN, workflow__in=visible).order_by("opened_at")
    requests = Approval.objects.filter(status=ApprovalStatus.PENDING, part_of=None, workflow__in=visible)
    asked = [
        [now - at for at in cases.values_list("opened_at", flat=True)[:QUESTIONS_LOOKED_AT]],
        [
            now - at
            for at in requests.order_by("requested_at").values_list("requested_at", flat=True)[:QUESTIONS_LOOKED_AT]
        ],
    ]
    groups, shortest = [], timedelta.min
    for limit, words in [*limits, (timedelta.max, "longer")]:
        counts = [sum(shortest <= age < limit for age in ages) for ages in asked]
        groups.append(Waiting(None if limit == timedelta.max else limit, words, *counts))
        shortest = limit
    return groups


def activity(person: Person) -> Activity:
    """What the newest attempts of the workflows that the person sees say about the last minutes."""
    now = clock.now()
    begins = now.replace(second=0, microsecond=0) - timedelta(minutes=MINUTES - 1)
    newest = list(Attempt.objects.order_by("-id").values_list("pk", "started_at")[:ATTEMPTS_LOOKED_AT])
    recent = [pk for pk, started_at in newest if started_at >= begins]
    reaches = len(newest) < ATTEMPTS_LOOKED_AT or len(recent) < len(newest)
    counted = (
        Attempt.objects.filter(pk__in=recent, step__workflow__in=workflows_visible_to(person))
        .order_by()
        .values_list(TruncMinute("started_at"), "step__tool_version__name", "ending")
        .annotate(Count("id"))
    )
    by_minute, by_tool = Counter[datetime](), dict[str, Counter[str]]()
    for minute, tool, ending, number in counted:
        by_minute[minute] += number
        by_tool.setdefault(tool, Counter())[ending or "running"] += number
    minutes = [begins + timedelta(minutes=number) for number in range(MINUTES)]
    return Activity(
        [(minute, by_minute[minute]) for minute in minutes],
        sorted((Tool(name, endings) for name, endings in by_tool.items()), key=_most_failures_first),
        None if reaches else newest[-1][1],
    )


def _most_failures_first(tool: Tool) -> tuple[int, str]:
    failures = sum(tool.endings.get(ending, 0) for ending in (Ending.REFUSED, Ending.UNKNOWN, Ending.LOST))
    return -failures, tool.name


_WORKERS = """
SELECT worker.id, worker.host || '/' || worker.pid, worker.started_at, cardinality(worker.tools),
  (SELECT count(*) FROM checkpoint_step AS step WHERE step.status = 'started' AND step.lease_holder_id = worker.id),
  EXISTS (
    SELECT FROM pg_locks AS lock
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (lock.classid::bigint << 32 | lock.objid::bigint) = worker.lock_key)
FROM checkpoint_workerprocess AS worker WHERE worker.ended_at IS NULL ORDER BY worker.started_at LIMIT 200
"""
_DATABASE = """
SELECT current_setting('server_version'), pg_postmaster_start_time(),
  (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
  current_setting('max_connections')::integer,
  coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()), 0),
  pg_database_size(current_database()),
  (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'checkpoint_workflow'::regclass),
  (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'checkpoint_auditentry'::regclass)
"""
_DUE = """
SELECT count(*), coalesce(extract(epoch FROM checkpoint_now() - min(wake_at)), 0)
FROM (SELECT wake_at FROM checkpoint_workflow
      WHERE wake_at <= checkpoint_now() AND held_by IS NULL ORDER BY wake_at LIMIT %(most)s) AS due
"""


def workers() -> list[Worker]:
    """The processes that have not ended, the oldest first."""
    return [Worker(*row) for row in statements.fetch(_WORKERS)]


def health() -> Health:
    """The database, and what is due."""
    (found,), (due,) = statements.fetch(_DATABASE), statements.fetch(_DUE, most=MOST_DUE)
    version, started_at, used, allowed, oldest, size, workflows, entries = found
    return Health(version, started_at, used, allowed, float(oldest), size, workflows, entries, due[0], float(due[1]))
