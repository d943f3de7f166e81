"""Steps that the agent carries out itself: begun under a fence, held, recorded. One transaction each.

What is true after a crash is what is true of a worker: before `begin` is committed nothing happened, and nothing may be
done; after it the effect may have happened, and the record says so until a report under the fence, a lookup or a person
says more. The agent acts in between, outside of everything here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User

from checkpoint import clock, doorbell, fencing, transitions
from checkpoint.agents import agent_reports, agent_waits
from checkpoint.agents.agent_reports import Recorded
from checkpoint.errors import ActionIncomplete, AlreadyEnding, FenceMoved, Forbidden, NotFound, StepNotBegun
from checkpoint.models import Approval, Attempt, Case, Step, Team, WorkerProcess
from checkpoint.outcomes import Execution
from checkpoint.people import Actor
from checkpoint.permissions import workflows_visible_to
from checkpoint.rows import step_rows
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import STEP_TERMINAL, WORKFLOW_TERMINAL, ApprovalStatus, CaseStatus, StepStatus
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes
from checkpoint.turns import claiming, pinned
from checkpoint.turns.calls import Claim, Worker
from checkpoint.workflows import require_right

SHORTEST_LEASE, LONGEST_LEASE = 5.0, 86_400.0  # seconds
_AGENTS = uuid.UUID("6c1de3b5-5f0e-4c5e-9a58-8ce9a1f1a7a1")  # namespace of their ids as holders of leases


@dataclass(frozen=True)
class Begun:
    """Permission to act once, under a fence."""

    claim: Claim
    lease_until: datetime
    deadline_at: datetime


@dataclass(frozen=True)
class Waiting:
    """Not begun, and nothing may be done.

    Attributes:
        waits_for: approval, question, earlier_steps, intent, inspection, time or limit; nothing where it is done.
        id: of the approval or case that people answer.
        retry_at: when it makes sense to ask again, where that is known.
    """

    waits_for: str
    sentence: str
    id: UUID | None = None
    retry_at: datetime | None = None


@one_transaction
def begin(
    *,
    step_id: UUID,
    actor: Actor,
    user: User,
    lease_seconds: float | None = None,
    alongside: Callable[[Begun], None] = lambda begun: None,
) -> Begun | Waiting:
    """Writes ahead that the agent now makes the step's call, if everything that a worker's start needs is there.

    Args:
        lease_seconds: after so long without `hold` the agent counts as gone; by default, and at most, the call's whole
            deadline.
        alongside: writes what belongs to a step that is begun, in its transaction; what it raises undoes both.

    Raises:
        NotFound: there is no such step that the user sees.
        Forbidden: the user sees it, but may not submit for its team.
        AlreadyEnding: its workflow has ended, or is being wound down.
        StepNotBegun: it is not the agent's, has ended or taken effect, or is begun already; the message says it.
    """
    lease = _checked_lease(lease_seconds)
    step = _own_step(step_id, user)
    worker = Worker(_holder(user), frozenset([str(step.tool_version)]), is_agent=True)
    changes = transitions.lock([step.workflow_id], actor=actor)
    workflow = changes.workflows[step.workflow_id]
    if workflow.winding_down or workflow.status in WORKFLOW_TERMINAL:
        raise AlreadyEnding(f"The workflow is {'being wound down' if workflow.winding_down else workflow.status}.")
    agent_waits.agent_is_back(changes, workflow)
    row = step_rows.of_ids([step_id])[step_id]
    _require_to_begin(row, changes.now)
    waiting = _before_its_turn(row)
    claim = None if waiting else _claim(changes, worker, row, lease)
    changes.finish()
    doorbell.ring_on_commit()
    if claim is None:
        return waiting or _what_it_waits_for(row, changes.now)
    begun = Begun(claim, row.lease_until or changes.now, claim.claimed_at + timedelta(seconds=claim.deadline))
    alongside(begun)
    return begun


@one_transaction
def hold(*, step_id: UUID, fence: int, user: User, lease_seconds: float) -> tuple[datetime, datetime]:
    """Renews the agent's lease, never past the deadline of its call.

    Returns:
        Until when the lease lasts, and the deadline.

    Raises:
        NotFound, Forbidden, StepNotBegun: as `begin`.
        FenceMoved: somebody else acts on the step, it was recorded, or the deadline is over.
    """
    seconds = _checked_lease(lease_seconds)
    _own_step(step_id, user)
    held = fencing.renew_of_agent_if_held(step_id, fence, holder=_holder_id(user), seconds=seconds or 0.0)
    if held is None:
        raise FenceMoved(
            f"You do not hold this step under fence {fence}, or its deadline is over: stop, do nothing more, and record"
            " what you know."
        )
    return held


@one_transaction
def record(
    *,
    step_id: UUID,
    fence: int,
    outcome: Execution,
    actor: Actor,
    user: User,
    alongside: Callable[[Recorded], None] = lambda recorded: None,
) -> Recorded:
    """Records how the agent's call went, under the fence that it was given.

    Under an old fence it is no write: it is kept as evidence, and may settle what nobody tried since. The same report
    again is one report.

    Raises:
        NotFound, Forbidden, StepNotBegun: as `begin`.
        ActionIncomplete: nobody began the step under this fence.
    """
    step = _own_step(step_id, user)
    attempt = Attempt.objects.filter(step=step, fence=fence).first()
    if attempt is None:
        raise ActionIncomplete("fence", f"nobody began this step under fence {fence}.")
    if attempt.worker_id != _holder_id(user):
        raise Forbidden("Another account began this step; only that one says how it went.")
    changes = transitions.lock([step.workflow_id], actor=actor)
    recorded = agent_reports.record(changes, step_id, fence, outcome)
    alongside(recorded)
    doorbell.ring_on_commit()
    return recorded


def _own_step(step_id: UUID, user: User) -> Step:
    """The account is read again: a right taken away counts at once (S25)."""
    user = User.objects.get(pk=user.pk)
    found = Step.objects.select_related("tool_version", "workflow").defer("workflow__input")
    step = found.filter(pk=step_id, workflow__in=workflows_visible_to(user)).first()
    if step is None:
        raise NotFound(f"There is no step {step_id} that you may see.")
    require_right(user, Team.objects.get(pk=step.workflow.team_id))
    if not step.by_agent:
        raise StepNotBegun(f"A worker carries out {step.tool_version.name}; this is no step of the agent's.")
    return step


def _holder_id(user: User) -> UUID:
    return uuid.uuid5(_AGENTS, str(user.pk))


def _holder(user: User) -> UUID:
    """Leases are held by processes; an account that acts has one row for ever, which never counts as running."""
    holder, now = _holder_id(user), clock.now()
    WorkerProcess.objects.get_or_create(
        pk=holder,
        defaults={
            "lock_key": -(holder.int % 2**62) - 1,  # no process of ours has a negative one
            "host": f"agent {user.get_username()}"[:255],
            "boot_id": "",
            "pid": 0,
            "tools": [],
            "ended_at": now,
            "ending": "agent",
        },
    )
    return holder


def _checked_lease(seconds: float | None) -> float | None:
    if seconds is not None and not SHORTEST_LEASE <= seconds <= LONGEST_LEASE:
        raise ActionIncomplete("lease_seconds", f"from {SHORTEST_LEASE:g} to {LONGEST_LEASE:g} seconds.")
    return seconds


def _require_to_begin(row: StepRow, now: datetime) -> None:
    if row.status in STEP_TERMINAL or row.status is StepStatus.COMMITTED:
        raise StepNotBegun(f"“{row.name}” is {row.status}: read its result instead of carrying it out.")
    if row.lease_until is not None and row.lease_until > now:
        raise StepNotBegun(
            f"“{row.name}” is begun already, under fence {row.fence}, and held until {row.lease_until:%H:%M:%S} UTC:"
            " do nothing. Whoever began it records how it went."
        )
    returned = Approval.objects.filter(step=row.id, status=ApprovalStatus.RETURNED).first()
    if returned is not None:
        raise StepNotBegun(f"“{row.name}” was sent back: {returned.closing}. Edit it; it is asked about anew then.")


def _before_its_turn(row: StepRow) -> Waiting | None:
    ahead = Step.objects.filter(workflow=row.workflow_id, position__lt=row.position)
    open_ahead = ahead.exclude(status__in=STEP_TERMINAL).order_by("position", "name")
    if first := open_ahead.only("name", "status").first():
        return Waiting("earlier_steps", f"Its turn comes after “{first.name}”, which is {first.status}.")
    return _question(row)


def _question(row: StepRow) -> Waiting | None:
    case = Case.objects.filter(step=row.id, status=CaseStatus.OPEN).order_by("opened_at").first()
    return Waiting("question", f"People are asked first: {case.sentence}", case.pk) if case else None


def _claim(changes: Changes, worker: Worker, row: StepRow, lease: float | None) -> Claim | None:
    """What a person or a provider made it wait for is looked at anew; a wait between two tries stays."""
    if row.status is not StepStatus.FAILED and row.next_at is not None:
        changes.touch(row).next_at = None
    claim = claiming.claim_for_agent(changes, worker, row)
    if claim is not None:
        seconds = min(claim.deadline, claim.deadline if lease is None else lease)
        fencing.lend(row, until=changes.now + timedelta(seconds=seconds))
    return claim


def _what_it_waits_for(row: StepRow, now: datetime) -> Waiting:
    if row.status is StepStatus.VERIFIED:
        return Waiting("nothing", "Another step with the same intent brought the effect about: read the result.")
    asked = Approval.objects.filter(step=row.id, status=ApprovalStatus.PENDING).first()
    if asked is not None:
        return Waiting("approval", "People say whether it may run.", asked.part_of_id or asked.pk, asked.expires_at)
    if question := _question(row):
        return question
    if row.waits_for_id is not None:
        return Waiting("intent", "Another step with the same intent brings the effect about.")
    if row.status is StepStatus.STARTED and pinned.contract(row).can_inspect:
        return Waiting("inspection", "What the last attempt did is looked up first.", retry_at=row.next_at)
    if row.next_at is not None and row.next_at > now:
        return Waiting("time", f"Not before {row.next_at:%Y-%m-%d %H:%M:%S} UTC.", retry_at=row.next_at)
    return Waiting("limit", "The limits of the tool, or of the policy, leave no place now.")
