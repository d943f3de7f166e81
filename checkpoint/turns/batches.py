"""What becomes of a plan when a step of a batch has failed for good. Part of the claim, in its transaction.

Failed for good is what is proved not to have taken effect and has no tries left. The policy that the workflow pins says
what follows (`rulings.OnFailure`): a person is asked; the plan goes on without the step, by a waiver; or the workflow
winds down. A step whose outcome is not known never comes here: it asks. docs/batches.md tells the rest.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from checkpoint import crash_points, doorbell
from checkpoint.gates import step_rulings
from checkpoint.gates.rulings import OnFailure
from checkpoint.models.waiver import WaiverCause
from checkpoint.rows import statements
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CaseReason
from checkpoint.transitions import Changes
from checkpoint.turns import pinned, verdicts

ALONE = "Nothing else of its batch succeeded or still can, so the plan does not go on without it by itself."

Failed = tuple[StepRow, list[AttemptRow]]
_Place = tuple[uuid.UUID, int]

# Of the steps at a place: how many there are, and how many have succeeded or still can.
_BATCHES = """
SELECT step.workflow_id, step.position, count(*), count(*) FILTER (WHERE step.status <> 'abandoned')
FROM checkpoint_step AS step
JOIN json_to_recordset(%(places)s) AS place(workflow_id uuid, position int)
  ON place.workflow_id = step.workflow_id AND place.position = step.position
WHERE step.status <> 'superseded' GROUP BY step.workflow_id, step.position
"""


@dataclass
class _Batch:
    """The steps side by side at one place: how many, and how many of them have succeeded or still can."""

    size: int
    left: int


def settle(changes: Changes, failed: Sequence[Failed]) -> None:
    """Decides about steps that have failed for good: each waits for a person, is waived, or ends its workflow."""
    if not failed:
        return
    wanted = {row.id: _on_failure(changes, row) for row, _ in failed}
    batches = _batches(changes, [row for row, _ in failed if wanted[row.id] is not OnFailure.WAIT])
    for row, attempts in failed:
        if changes.workflows[row.workflow_id].winding_down:
            continue  # it ends with its workflow
        batch = batches.get((row.workflow_id, row.position), _Batch(1, 1))
        if wanted[row.id] is OnFailure.WAIT or batch.size == 1:
            verdicts.open_case(changes, row, CaseReason.RETRIES_EXHAUSTED, attempts)
        elif wanted[row.id] is OnFailure.STOP:
            _stop(changes, row)
        elif batch.left == 1:
            verdicts.open_case(changes, row, CaseReason.RETRIES_EXHAUSTED, attempts, note=ALONE)
        else:
            batch.left -= 1
            _waive(changes, row, WaiverCause.FAILED, f"it failed and no tries are left{_said(attempts)}")


def waive_dependent(changes: Changes, row: StepRow, lacking: Sequence[str]) -> None:
    """A planned step refers to the results of waived ones, so there is nothing that could be sent for it."""
    _waive(changes, row, WaiverCause.LACKS_RESULT, f"it refers to the result of {_steps(lacking)}, which was waived")


def _on_failure(changes: Changes, row: StepRow) -> OnFailure:
    """What the pinned policy wants. What undoes an effect is never given up without a person."""
    workflow = changes.workflows[row.workflow_id]
    if row.compensates_id is not None or not pinned.has_rules(workflow.policy_version_id):
        return OnFailure.WAIT
    return step_rulings.on_failure(workflow, row)


def _batches(changes: Changes, rows: Iterable[StepRow]) -> dict[_Place, _Batch]:
    places = {(row.workflow_id, row.position) for row in rows}
    if not places:
        return {}
    changes.write_steps()  # what this turn has ended counts
    listed = statements.rows([{"workflow_id": workflow, "position": position} for workflow, position in places])
    return {
        (workflow, position): _Batch(size, left)
        for workflow, position, size, left in statements.fetch(_BATCHES, places=listed)
    }


def _waive(changes: Changes, row: StepRow, cause: WaiverCause, why: str) -> None:
    policy_version_id = changes.workflows[row.workflow_id].policy_version_id
    changes.waive(row, cause, f"{_policy(policy_version_id)} goes on without it: {why}", policy_version_id)
    crash_points.reach("waive", row.name)
    doorbell.ring_on_commit()  # what follows in the plan may be ready now, and nobody else says so


def _stop(changes: Changes, row: StepRow) -> None:
    workflow = changes.workflows[row.workflow_id]
    workflow.winding_down = True
    reason = f"{_policy(workflow.policy_version_id)} stops the plan: step {row.name} of a batch failed for good"
    details = {"policy": str(workflow.policy_version_id), "step": row.name}
    changes.note_workflow(row.workflow_id, "wind_down", before=workflow.status, reason=reason, details=details)


def _policy(policy_version_id: uuid.UUID) -> str:
    return f"policy version {pinned.policy_number(policy_version_id)}"


def _said(attempts: Sequence[AttemptRow]) -> str:
    said = next((attempt.detail for attempt in reversed(attempts) if attempt.detail), "")
    return f" ({said})" if said else ""


def _steps(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return f"step {shown}" if len(names) == 1 else f"steps {shown}{' and others' if len(names) > 5 else ''}"
