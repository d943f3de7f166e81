"""The sole writer of states: lock, move, audit, after-commit (DESIGN.md section 5, rule 6).

A verb locks its workflows, builds one `Changes`, moves steps in memory and calls `finish()`. That writes the steps,
attempts, evidence, cases and audit entries in sets, and gives every workflow the status that follows from its steps.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction

from checkpoint import audit, clock, fencing
from checkpoint.errors import IllegalMove, LeaseLost
from checkpoint.explaining.questions import Question
from checkpoint.models.waiver import WaiverCause
from checkpoint.people import Actor
from checkpoint.rows import (
    approval_log,
    attempt_log,
    case_log,
    evidence_log,
    statements,
    step_rows,
    waiver_log,
    workflow_rows,
)
from checkpoint.rows.announcements import Announcement, announce
from checkpoint.rows.approval_log import NewApproval
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.case_log import CaseRow
from checkpoint.rows.evidence_log import EvidenceRow
from checkpoint.rows.step_rows import Guard, StepRow
from checkpoint.rows.waiver_log import WaiverRow
from checkpoint.rows.workflow_rows import DerivedFacts, WorkflowRow
from checkpoint.states import (
    STEP_ARROWS,
    STEP_TERMINAL,
    WORKFLOW_TERMINAL,
    ApprovalStatus,
    CaseReason,
    StepStatus,
    WorkflowStatus,
    workflow_status,
)
from checkpoint.transactions import require_transaction
from checkpoint.turns import pinned

# A workflow goes to and fro between these with every step, and the entries about the steps say so already.
_STEP_BY_STEP = {WorkflowStatus.EXECUTING, WorkflowStatus.VERIFYING}
WINDS_DOWN = (StepStatus.PLANNED, StepStatus.PREPARED, StepStatus.FAILED)
# From these, people can be asked about a step; in those, what they were asked is settled, whichever way led there.
_ASKABLE = frozenset({*WINDS_DOWN, StepStatus.UNCERTAIN})
_ANSWERED = frozenset({StepStatus.COMMITTED, StepStatus.VERIFIED, StepStatus.ABANDONED, StepStatus.SUPERSEDED})


@dataclass
class Changes:
    """What one verb changes, collected and written in sets.

    Attributes:
        workflows: the workflows that the verb has locked, by id.
        actor: who changes it.
        now: database time, read after the locks.
    """

    workflows: dict[uuid.UUID, WorkflowRow]
    actor: Actor
    now: datetime
    _steps: dict[uuid.UUID, StepRow] = field(default_factory=dict)
    _guards: dict[uuid.UUID, Guard] = field(default_factory=dict)
    _moved: set[uuid.UUID] = field(default_factory=set)
    _begun: list[AttemptRow] = field(default_factory=list)
    _ended: dict[uuid.UUID, AttemptRow] = field(default_factory=dict)
    _evidence: list[EvidenceRow] = field(default_factory=list)
    _cases: list[CaseRow] = field(default_factory=list)
    _settled: list[tuple[uuid.UUID, str]] = field(default_factory=list)
    _answered: list[uuid.UUID] = field(default_factory=list)
    _waivers: list[WaiverRow] = field(default_factory=list)
    _requests: list[NewApproval] = field(default_factory=list)
    _entries: list[audit.Entry] = field(default_factory=list)
    _held: dict[uuid.UUID, datetime] = field(default_factory=dict)
    _sent: list[tuple[statements.Sent, int]] = field(default_factory=list)
    _freed: list[uuid.UUID] = field(default_factory=list)

    def touch(self, row: StepRow) -> StepRow:
        """Announces a change of the row; call it before the first one, so that the guards carry what was read."""
        if row.id not in self._steps:
            self._steps[row.id] = row
            self._guards[row.id] = Guard(row.version, row.fence)
            row.version += 1
        return self._steps[row.id]

    def move(self, row: StepRow, to: StepStatus, *, verb: str, reason: str = "", **details: Any) -> None:
        """Moves a step along an arrow.

        Raises:
            IllegalMove: `states.STEP_ARROWS` has no such arrow.
        """
        if to not in STEP_ARROWS[row.status]:
            raise IllegalMove(f"step {row.name} cannot go from {row.status} to {to}")
        if row.id in self._moved:
            self.write_steps()
        self.touch(row)
        before, row.status = row.status, to
        self._moved.add(row.id)
        if row.intent_name and to in STEP_TERMINAL:
            self._freed.append(row.id)
        if before in _ASKABLE and to in _ANSWERED:
            self.settle_cases(row, f"the step went on: {to}")
            self._answered.append(row.id)
        elif to in _ANSWERED and self.workflows[row.workflow_id].open_requests:
            # Whether it may be sent again was asked, and now its outcome is known.
            self._answered.append(row.id)
        self.note(row, verb, before=before, after=to, reason=reason, details={"fence": row.fence, **details})

    def note(self, row: StepRow, verb: str, **content: Any) -> None:
        """Writes an audit entry about a step."""
        self._entries.append(audit.Entry(row.workflow_id, self.actor, verb, row.subject, **content))

    def note_workflow(self, workflow_id: uuid.UUID, verb: str, **content: Any) -> None:
        """Writes an audit entry about a workflow."""
        self._entries.append(audit.Entry(workflow_id, self.actor, verb, "workflow", **content))

    def begin_attempt(self, attempt: AttemptRow) -> None:
        """Stores a new attempt."""
        self._begun.append(attempt)

    def end_attempt(self, attempt: AttemptRow) -> None:
        """Stores the ending of an attempt."""
        self._ended[attempt.id] = attempt

    def observe(self, evidence: EvidenceRow) -> None:
        """Stores evidence."""
        self._evidence.append(evidence)

    def ask(self, row: StepRow, reason: CaseReason, question: Question) -> None:
        """Opens a case about a step, in the same transaction as the state that it explains."""
        self.touch(row)
        self._cases.append(case_log.ask(row, reason, question, now=self.now))
        self.note(row, "ask", after=reason.value, reason=question.sentence)

    def waive(self, row: StepRow, cause: WaiverCause, reason: str, policy_version_id: uuid.UUID) -> None:
        """Ends a step without which its plan goes on, by a decision that is recorded in the same transaction."""
        self.move(row, StepStatus.ABANDONED, verb="waive", reason=reason, policy=str(policy_version_id))
        self._waivers.append(waiver_log.waive(row.id, cause, reason, policy_version_id=policy_version_id, now=self.now))

    def request_approval(self, row: StepRow, request: Sequence[NewApproval]) -> None:
        """Asks for permission to start a step, or with it others; until it is given or its time is over, it waits."""
        self._requests.extend(request)
        self.touch(row).next_at = request[0].expires_at
        details = {"approval": str(request[0].id), "policy": str(request[0].policy_version_id), "steps": len(request)}
        self.note(row, "request_approval", details=details)

    def hold(self, workflow_id: uuid.UUID, *, until: datetime) -> None:
        """What is ready of a workflow found no place: it is looked at again then, or when something else is due."""
        self._held[workflow_id] = until

    def settle_cases(self, row: StepRow, how: str) -> None:
        """Closes whatever question is open about a step: it moved on by another way. What is said first stands."""
        self._settled.append((row.id, how))

    def write_steps(self) -> None:
        """Writes what was collected so far.

        Raises:
            LeaseLost: a row is no longer what was read, although its workflow is locked.
        """
        with statements.pipelined():
            self._send_steps()
        self._check_sent()

    def _send_steps(self) -> None:
        """In the order that foreign keys need."""
        if self._evidence:
            evidence_log.insert(self._evidence)
        rows = list(self._steps.values())
        if rows:
            self._sent.append((step_rows.write(rows, list(self._guards.values())), len(rows)))
        if self._ended:
            attempt_log.store_endings(list(self._ended.values()))
        if self._begun:
            attempt_log.insert(self._begun)
        if self._waivers:
            waiver_log.insert(self._waivers)
        for written in (
            self._evidence,
            self._steps,
            self._guards,
            self._moved,
            self._ended,
            self._begun,
            self._waivers,
        ):
            written.clear()

    def _check_sent(self) -> None:
        if any(sent.count != wanted for sent, wanted in self._sent):
            raise LeaseLost("a step changed under its lock; nothing was written")
        self._sent.clear()

    def finish(self) -> None:
        """Writes everything; afterwards each workflow's status is the function of its steps again.

        Raises:
            LeaseLost: as `write_steps`.
        """
        require_transaction()
        if self._requests:
            approval_log.insert(self._requests)
        self._wind_down()
        with statements.pipelined():
            self._send_steps()
            if self._settled:
                case_log.settle(self._settled, now=self.now)
            if self._answered:
                how = "the step went on by another way"
                approval_log.end(self._answered, ApprovalStatus.WITHDRAWN, how, now=self.now)
            if self._cases:
                case_log.insert(self._cases)
            self._follow_steps()
            audit.append(self._entries, at=self.now)
        self._check_sent()
        ended = [row.id for row in self.workflows.values() if row.ended_at == self.now and row.submitted_by_id]
        if self._freed:
            # Not here: their workflows are not locked. Should it not come to it, the sweeper finds them.
            transaction.on_commit(partial(workflow_rows.wake_waiters, self._freed), robust=True)
        asked_about = [request.id for request in self._requests if request.part_of_id is None]
        announce(Announcement([case.id for case in self._cases], ended, self.now, asked_about))

    def _wind_down(self) -> None:
        """Ends the steps of ending workflows that have nothing in the air (DESIGN.md section 2)."""
        ending = [workflow.id for workflow in self.workflows.values() if workflow.winding_down]
        if not ending:
            return
        self.write_steps()
        rows = step_rows.of_workflows(ending, WINDS_DOWN)
        approval_log.end([row.id for row in rows], ApprovalStatus.WITHDRAWN, "the workflow was abandoned", now=self.now)
        for row in rows:
            self.settle_cases(row, "the workflow was abandoned")
            self.move(row, StepStatus.ABANDONED, verb="abandon", reason="the workflow was abandoned")

    def _follow_steps(self) -> None:
        live = [row for row in self.workflows.values() if row.status not in WORKFLOW_TERMINAL]
        facts = workflow_rows.facts([row.id for row in live], now=self.now, held=self._held)
        for row in live:
            before, after = row.status, workflow_status(facts[row.id].status_facts(row))
            row.agent_due_at = _agent_due_at(row, after, self.now)
            row.status, row.wake_at = after, _wake_at(row, row.agent_due_at or facts[row.id].wake_at, self.now)
            if after in WORKFLOW_TERMINAL:
                row.wake_at, row.held_by, row.ended_at = None, None, self.now
                self._close_requests(row, facts[row.id])
            if after is not before and {before, after} != _STEP_BY_STEP:
                self.note_workflow(row.id, "move", before=before, after=after, reason=_in_part(row, facts[row.id]))
        workflow_rows.write(live, now=self.now)

    def _close_requests(self, row: WorkflowRow, facts: DerivedFacts) -> None:
        """Nobody is asked about what has ended: a step may have started because the policy asks nothing any more."""
        if facts.open_approvals:
            steps = step_rows.of_workflows([row.id], STEP_TERMINAL)
            approval_log.end([step.id for step in steps], ApprovalStatus.SUPERSEDED, "the workflow ended", now=self.now)


def _in_part(row: WorkflowRow, facts: DerivedFacts) -> str:
    """That a completed workflow's result is partial; empty where it is whole."""
    waived = facts.status_facts(row).waived if row.status is WorkflowStatus.COMPLETED else 0
    return f"in part: {waived} {'step was' if waived == 1 else 'steps were'} waived" if waived else ""


def _wake_at(row: WorkflowRow, wake_at: datetime | None, now: datetime) -> datetime | None:
    """When to look at a workflow again. An earlier look that is still to come does as well: it finds out the rest.

    So the waking time, which is indexed, is rarely written, and the row's updates stay within its page.
    """
    if wake_at is not None and row.wake_at is not None and now < row.wake_at <= wake_at:
        return row.wake_at
    return wake_at


def _agent_due_at(row: WorkflowRow, status: WorkflowStatus, now: datetime) -> datetime | None:
    """Until when the workflow waits for its agent; its whole time from when its turn came."""
    if status is not WorkflowStatus.AWAITING_AGENT or row.agent_due_at is not None:
        return row.agent_due_at if status is WorkflowStatus.AWAITING_AGENT else None
    return now + agents_time(row)


def agents_time(row: WorkflowRow) -> timedelta:
    """How long a workflow waits for its agent before people are asked."""
    of_policy = pinned.policy(row.policy_version_id).agent_deadline
    return timedelta(seconds=of_policy if row.agent_seconds is None else row.agent_seconds)


def lock(workflow_ids: Iterable[uuid.UUID], *, actor: Actor) -> Changes:
    """Locks the workflows, in the order of their ids, and then reads the time. Waits for whoever holds them."""
    require_transaction()
    rows = workflow_rows.lock(workflow_ids)
    return Changes({row.id: row for row in rows}, actor, clock.now())


def overrule(changes: Changes, row: StepRow, *, why: str) -> None:
    """A command that bypasses the holder's lease: takes the next fence and says so in the audit (S45)."""
    changes.touch(row)
    fencing.overrule(row)
    changes.note(row, "overrule", reason=why, details={"fence": row.fence})
