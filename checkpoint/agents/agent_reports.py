"""What an agent says of a call that it made: a write under its fence, evidence under an old one."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from checkpoint.canonical import canonical
from checkpoint.models import Evidence, EvidenceKind, Step
from checkpoint.models.step import Activity
from checkpoint.outcomes import Execution, Receipt, Refused
from checkpoint.rows import attempt_log, step_rows
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.transitions import Changes
from checkpoint.turns import pinned, recording
from checkpoint.turns.calls import Claim, Report


@dataclass(frozen=True)
class Recorded:
    """How the report was taken.

    Attributes:
        late: somebody else acts on the step, or did since; nothing was written but evidence.
    """

    step: Step
    late: bool


def record(changes: Changes, step_id: UUID, fence: int, outcome: Execution) -> Recorded:
    """Takes the report on a step of a locked workflow that was begun under this fence."""
    row = step_rows.of_ids([step_id])[step_id]
    attempts = attempt_log.of_steps([step_id])[step_id]
    attempt = next(each for each in attempts if each.fence == fence)
    held = row.fence == fence and row.activity == Activity.EXECUTE
    before = None if held else _said_before(step_id, attempt, outcome)
    if before is None:
        recording.record(changes, [Report(_claim(row, attempt), outcome)])
        changes.finish()
    late = not held and before != EvidenceKind.RESPONSE
    return Recorded(Step.objects.select_related("tool_version", "workflow").get(pk=step_id), late)


def _said_before(step_id: UUID, attempt: AttemptRow, outcome: Execution) -> str | None:
    """As what the same report was kept earlier: a response where it was a write, a late receipt where it was not."""
    said = Evidence.objects.filter(
        step=step_id, fence=attempt.fence, kind__in=(EvidenceKind.RESPONSE, EvidenceKind.LATE_RECEIPT)
    )
    if isinstance(outcome, Receipt):
        same = said.filter(
            finding="receipt", facts=canonical(outcome.facts), operation_id=(outcome.operation_id or "")[:255]
        )
    else:
        same = said.filter(finding="refused" if isinstance(outcome, Refused) else "unknown")
    return same.order_by("id").values_list("kind", flat=True).first()


def _claim(row: StepRow, attempt: AttemptRow) -> Claim:
    tool_version = pinned.tool_version(row.tool_version_id)
    return Claim(
        step_id=row.id,
        workflow_id=row.workflow_id,
        step_name=row.name,
        tool=tool_version.name,
        tool_version=tool_version.version,
        activity=Activity.EXECUTE,
        fence=attempt.fence,
        attempt_number=attempt.number,
        idempotency_key=row.idempotency_key,
        arguments=row.arguments or "",
        deadline=pinned.contract(row).deadline,
        claimed_at=attempt.started_at,
    )
