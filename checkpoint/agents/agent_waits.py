"""It is the agent's turn: for how long, and what becomes of a workflow whose agent does not come back.

A plan that rests at its agent has a time (`agent_due_at`, derived with the status). Past it a person is asked: to wait
as long again, or to end the workflow. Nobody but the agent, or who may submit in its place, can say that a plan is
whole, so no answer completes it. An agent that comes back later goes on all the same, and the question is settled.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from checkpoint.errors import RecordDamaged
from checkpoint.gates.gatekeeping import Gatekeeper
from checkpoint.models import Case
from checkpoint.rows import case_log, step_rows
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.states import STEP_TERMINAL, CaseReason, CaseStatus, StepStatus, WorkflowStatus
from checkpoint.transitions import Changes, agents_time
from checkpoint.turns import verdicts

log = logging.getLogger(__name__)

_LOOK_AGAIN = timedelta(seconds=60)
_LIVE = tuple(status for status in StepStatus if status is not StepStatus.SUPERSEDED)


def ask_overdue(changes: Changes) -> None:
    """Asks about those of the locked workflows whose agents let their time pass. It costs the others nothing."""
    for workflow in changes.workflows.values():
        due_at = workflow.agent_due_at
        if workflow.status is WorkflowStatus.AWAITING_AGENT and due_at is not None and due_at <= changes.now:
            row = _resting_at(workflow)
            note = f"It has been the agent's turn since before {due_at:%Y-%m-%d %H:%M:%S} UTC, when its time ended."
            verdicts.open_case(changes, row, CaseReason.AGENT_SILENT, [], note=note)


def agent_is_back(changes: Changes, workflow: WorkflowRow) -> None:
    """The agent acts: the question about its silence is settled, and its time begins anew with its next turn."""
    workflow.agent_due_at = None
    about = Case.objects.filter(workflow=workflow.id, reason=CaseReason.AGENT_SILENT, status=CaseStatus.OPEN)
    case_log.settle(
        [(step_id, "the agent came back") for step_id in about.values_list("step_id", flat=True)], now=changes.now
    )


def leave_to_agent(changes: Changes, gatekeeper: Gatekeeper, row: StepRow, attempts: list[AttemptRow]) -> None:
    """A worker came upon a step that only its agent may send: it is not sent, and what has to be asked is asked."""
    changes.touch(row)
    if row.status is StepStatus.STARTED:
        _wait_for_another_send(changes, row, attempts)
        return
    try:
        gatekeeper.admits(row, lambda _: False)
    except (RecordDamaged, LookupError, TypeError, ValueError):
        log.exception("the policy in force cannot be read, so nothing is asked about step %s", row.name)
    if row.next_at is None or row.next_at <= changes.now:
        row.next_at = changes.now + _LOOK_AGAIN


def _wait_for_another_send(changes: Changes, row: StepRow, attempts: list[AttemptRow]) -> None:
    """The agent vanished, and may send again under the same key. If it does not in its time, nobody can tell."""
    workflow = changes.workflows[row.workflow_id]
    until = attempts[-1].deadline_at + agents_time(workflow)
    if until <= changes.now:
        note = "Its agent could send it again with the same key, and did not come back to do so."
        verdicts.open_case(changes, row, CaseReason.OUTCOME_UNKNOWN, attempts, note=note)
    else:
        row.next_at = until


def _resting_at(workflow: WorkflowRow) -> StepRow:
    """The first step that the agent is to go on with, else the last of the plan."""
    rows = sorted(step_rows.of_workflows([workflow.id], _LIVE), key=lambda row: (row.position, row.name))
    return next((row for row in rows if row.status not in STEP_TERMINAL), rows[-1])
