"""The hot path's view of a workflow: locked, derived and written back in sets."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from checkpoint.rows import statements
from checkpoint.rows.step_rows import OWNER_ENDED
from checkpoint.states import StepStatus, WorkflowFacts, WorkflowStatus
from checkpoint.transactions import one_transaction


@dataclass(slots=True)
class WorkflowRow:
    """What a verb needs of a workflow that it has locked.

    Attributes:
        team: slug of the team that owns it.
        prompt_version, present_prompt: the prompt that it was planned with, and with which its agent resumed last.
        agent_seconds: for so long it waits for its agent; None as the policy says.
        agent_due_at: until when, while it does.
        open_requests: whether an approval is asked for, given and not used, or sent back to the agent.
    """

    id: uuid.UUID
    kind: str
    team: str
    team_id: uuid.UUID
    policy_version_id: uuid.UUID
    status: WorkflowStatus
    sealed: bool
    winding_down: bool
    wake_at: datetime | None
    held_by: str | None
    ended_at: datetime | None
    submitted_by_id: int | None
    prompt_version: str
    present_prompt: str
    agent_seconds: int | None
    agent_due_at: datetime | None
    open_requests: bool

    def __post_init__(self) -> None:
        self.status = WorkflowStatus(self.status)


@dataclass(slots=True)
class DerivedFacts:
    """What the steps and cases say about a workflow."""

    steps: dict[StepStatus, int] = field(default_factory=dict)
    open_cases: int = 0
    open_approvals: int = 0
    sent_back: int = 0
    agents_turn: int = 0
    wake_at: datetime | None = None

    def status_facts(self, row: WorkflowRow) -> WorkflowFacts:
        """The facts that the status is a function of. It is the agent's turn when nobody else can do anything."""
        agents_turn = 0 if self.wake_at else self.agents_turn
        return WorkflowFacts(
            self.steps, self.open_cases, self.open_approvals, self.sent_back, row.sealed, row.winding_down, agents_turn
        )


_SELECT = (
    "SELECT id, kind, (SELECT slug FROM checkpoint_team WHERE id = team_id), team_id, policy_version_id, status,"
    " sealed, winding_down, wake_at, held_by, ended_at, submitted_by_id,"
    " prompt_version, coalesce(resumed_prompt, prompt_version), agent_seconds, agent_due_at,"
    " EXISTS (SELECT FROM checkpoint_approval WHERE workflow_id = checkpoint_workflow.id"
    " AND status IN ('pending', 'approved', 'returned'))"
    " FROM checkpoint_workflow"
)

# Readiness, limits and time are read in a later statement than the one that took the lock (DESIGN.md section 3).
_LOCK = f"{_SELECT} WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE"
_LOCK_DUE = (
    f"{_SELECT} WHERE wake_at <= (SELECT checkpoint_now()) ORDER BY wake_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED"
)

_LOCK_HELD = (
    f"{_SELECT} WHERE held_by = ANY(%(tools)s) ORDER BY held_by, wake_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED"
)

# A step at the front wakes its workflow when its lease or its wait ends, at once if it has neither, and never while a
# question about it is open, the agent is to change it or to carry it out, or another step is to bring about its effect.
_FACTS = f"""
WITH step AS (
  SELECT step.workflow_id, step.status, step.by_agent,
         greatest(step.lease_until, step.next_at) AS ready_at,
         step.position = min(step.position) FILTER (WHERE step.status NOT IN ('verified', 'superseded', 'abandoned'))
           OVER (PARTITION BY step.workflow_id) AS at_front,
         step.id IN (SELECT step_id FROM checkpoint_case
                     WHERE status = 'open' AND workflow_id = ANY(%(ids)s)) AS asked,
         step.id IN (SELECT step_id FROM checkpoint_approval
                     WHERE status = 'pending' AND workflow_id = ANY(%(ids)s)) AS unapproved,
         step.id IN (SELECT step_id FROM checkpoint_approval
                     WHERE status = 'returned' AND workflow_id = ANY(%(ids)s)) AS sent_back,
         step.waits_for_id IS NOT NULL AND NOT {OWNER_ENDED} AS waits
  FROM checkpoint_step AS step WHERE step.workflow_id = ANY(%(ids)s))
SELECT workflow_id, status, count(*), count(*) FILTER (WHERE asked), count(*) FILTER (WHERE unapproved),
       count(*) FILTER (WHERE sent_back),
       count(*) FILTER (WHERE by_agent AND at_front AND status IN ('prepared', 'failed')
                          AND NOT (asked OR unapproved OR sent_back OR waits)),
       min(coalesce(ready_at, %(now)s)) FILTER (
         WHERE at_front AND NOT asked AND NOT sent_back AND NOT waits
           AND status IN ('planned', 'prepared', 'started', 'committed', 'failed')
           AND NOT (by_agent AND status IN ('prepared', 'failed') AND NOT unapproved))
FROM step GROUP BY workflow_id, status
"""

# Of steps that have a time of their own at which they are to be looked at.
_NEXT_TIMES = """
SELECT workflow_id, min(greatest(lease_until, next_at)) FROM checkpoint_step
WHERE workflow_id = ANY(%(ids)s) AND status IN ('planned', 'prepared', 'started', 'committed', 'failed')
  AND greatest(lease_until, next_at) > %(now)s
GROUP BY workflow_id
"""

# Whoever holds a workflow here derives its waking time anew, or leaves it to the sweeper.
_WAKE_WAITERS = """
UPDATE checkpoint_workflow SET wake_at = checkpoint_now() WHERE id IN (
  SELECT workflow.id FROM checkpoint_workflow AS workflow
  WHERE workflow.status NOT IN ('completed', 'abandoned') AND workflow.id IN (
    SELECT waiting.workflow_id FROM checkpoint_step AS waiting
    JOIN checkpoint_intent AS intent ON intent.id = waiting.waits_for_id
    WHERE intent.owner_id = ANY(%(owners)s) AND waiting.status = 'prepared')
  ORDER BY workflow.id FOR UPDATE SKIP LOCKED)
"""

_WRITE = """
UPDATE checkpoint_workflow AS workflow SET version = version + 1, updated_at = %(now)s, status = change.status,
  policy_version_id = change.policy_version_id, winding_down = change.winding_down, wake_at = change.wake_at,
  held_by = change.held_by, ended_at = change.ended_at, agent_due_at = change.agent_due_at,
  sealed = change.sealed
FROM json_to_recordset(%(changes)s) AS change(
  id uuid, status text, policy_version_id uuid, winding_down bool, wake_at timestamptz, held_by text,
  ended_at timestamptz, agent_due_at timestamptz, sealed bool)
WHERE workflow.id = change.id
"""


_RESUME = "UPDATE checkpoint_workflow SET resumed_prompt = %(prompt)s WHERE id = %(id)s"
_ADOPT_PROMPT = """
UPDATE checkpoint_workflow SET prompt_version = coalesce(resumed_prompt, prompt_version), resumed_prompt = NULL
WHERE id = %(id)s
"""


def lock(ids: Iterable[uuid.UUID]) -> list[WorkflowRow]:
    """Locks these workflows in the order of their ids, waiting for each."""
    return _rows(_LOCK, ids=list(set(ids)))


def lock_due(limit: int) -> list[WorkflowRow]:
    """Locks workflows for which something can be done now, longest waiting first; skips those that others hold."""
    return _rows(_LOCK_DUE, limit=limit)


def resume(row: WorkflowRow, prompt_version: str) -> None:
    """Writes the prompt with which the agent of a locked workflow goes on."""
    row.present_prompt = prompt_version
    statements.change(_RESUME, id=row.id, prompt=prompt_version)


def adopt_prompt(row: WorkflowRow) -> None:
    """A locked workflow counts as planned with the prompt with which its agent resumed."""
    row.prompt_version = row.present_prompt
    statements.change(_ADOPT_PROMPT, id=row.id)


def lock_held(tools: Iterable[str], limit: int) -> list[WorkflowRow]:
    """Locks workflows that wait for a place with one of these tools, as `lock_due` does."""
    return _rows(_LOCK_HELD, tools=sorted(set(tools)), limit=limit)


def facts(
    ids: Sequence[uuid.UUID], *, now: datetime, held: Mapping[uuid.UUID, datetime]
) -> dict[uuid.UUID, DerivedFacts]:
    """What the stored steps and cases say about these workflows.

    Args:
        held: which of them wait for a place, and until when. Without this, what is ready in them would put them at the
            head of all that is due, for ever.
    """
    found = {workflow_id: DerivedFacts() for workflow_id in ids}
    for workflow_id, status, count, asked, unapproved, sent_back, agents_turn, wake_at in statements.fetch(
        _FACTS, ids=list(ids), now=now
    ):
        derived = found[workflow_id]
        derived.steps[StepStatus(status)] = count
        derived.open_cases += asked
        derived.open_approvals += unapproved
        derived.sent_back += sent_back
        derived.agents_turn += agents_turn
        derived.wake_at = min(filter(None, (derived.wake_at, wake_at)), default=None)
    others = dict(statements.fetch(_NEXT_TIMES, ids=list(held), now=now)) if held else {}
    for workflow_id, until in held.items():
        found[workflow_id].wake_at = min(until, others.get(workflow_id, until))
    return found


@one_transaction
def wake_waiters(owners: Sequence[uuid.UUID]) -> int:
    """Wakes the workflows that wait for these steps, which have ended; returns how many it woke."""
    return statements.change(_WAKE_WAITERS, owners=list(owners))


def write(rows: Sequence[WorkflowRow], *, now: datetime) -> None:
    """Writes status, end and waking time, and counts the version up."""
    if rows:
        statements.change(_WRITE, changes=statements.rows(rows), now=now)


def _rows(statement: str, **parameters: Any) -> list[WorkflowRow]:
    return [WorkflowRow(*row) for row in statements.fetch(statement, **parameters)]
