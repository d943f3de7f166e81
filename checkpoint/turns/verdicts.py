"""What is done about a step once it is clear what is true, or that nobody can know."""

from __future__ import annotations

from datetime import timedelta

from checkpoint import fencing
from checkpoint.actions import StepFacts
from checkpoint.explaining.questions import Cut, Subject, ask
from checkpoint.explaining.tries import budget_in_words
from checkpoint.gates import step_rulings
from checkpoint.gates.jitter import share_of
from checkpoint.models import Ending
from checkpoint.outcomes import ARTIFACT_MISMATCH, Refused
from checkpoint.rows import attempt_log, evidence_log
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CASE_RULES, CaseReason, Standing, StepStatus
from checkpoint.transitions import Changes
from checkpoint.turns import pinned

LONGEST_RETRY_AFTER = 86_400.0  # seconds; a provider cannot put a step off for ever


def step_facts(row: StepRow, attempts: list[AttemptRow]) -> StepFacts:
    """What the decision needs of a stored step."""
    return StepFacts(
        status=row.status,
        lease_until=row.lease_until,
        attempts=[attempt.facts for attempt in attempts],
        attempts_allowed=row.attempts_allowed,
        inspection_count=row.inspection_count,
        next_at=row.next_at,
        committed_at=row.committed_at,
    )


def conclude_failed(changes: Changes, row: StepRow, attempts: list[AttemptRow], why: str) -> None:
    """Every attempt is proved not to have taken effect: the step may be tried again after the policy's wait."""
    for attempt in attempts:
        if attempt.applied is None:
            attempt.end(Ending.LOST, applied=False, detail=why, now=changes.now)
            changes.end_attempt(attempt)
    policy = step_rulings.budgets(changes.workflows[row.workflow_id], row)
    changes.move(row, StepStatus.FAILED, verb="fail", reason=why)
    row.next_at = changes.now + policy.retry_wait(row.attempt_count, share_of(row.id, row.attempt_count))


def heed(changes: Changes, row: StepRow, attempts: list[AttemptRow], refused: Refused) -> None:
    """What a refusal asks for beside its proof: a longer wait, no further try, or a person who mends an artifact."""
    changes.touch(row)
    if refused.code == ARTIFACT_MISMATCH and row.status is StepStatus.FAILED:
        open_case(changes, row, CaseReason.ARTIFACT_MISMATCH, attempts, said=refused.message)
    if refused.retry_after is not None:
        asked_for = changes.now + timedelta(seconds=min(max(refused.retry_after, 0.0), LONGEST_RETRY_AFTER))
        row.next_at = max(asked_for, row.next_at or asked_for)  # at least; the policy's own wait may be longer
    if refused.permanent:
        row.attempts_allowed = row.attempt_count


def conclude_verified(changes: Changes, row: StepRow, standing: Standing | None = None) -> None:
    """The step is done. Without a reading of the outcome it stands as a person attested it, or on its receipt alone."""
    unread = Standing.ATTESTED if row.standing == Standing.ATTESTED else Standing.RECEIPT_ONLY
    changes.touch(row)
    fencing.release(row)
    row.standing = standing or unread
    changes.move(row, StepStatus.VERIFIED, verb="verify", standing=row.standing)
    row.verified_at, row.next_at = changes.now, None


def open_case(
    changes: Changes,
    row: StepRow,
    reason: CaseReason,
    attempts: list[AttemptRow],
    *,
    said: str = "",
    note: str = "",
    answer_by: str = "",
) -> None:
    """Stops a step with one question; it becomes uncertain where the outcome is what is asked."""
    if reason is CaseReason.RETRIES_EXHAUSTED and row.compensates_id is not None:
        reason = CaseReason.COMPENSATION_FAILED
    subject = Subject(
        step=row.name,
        tool=str(pinned.tool_version(row.tool_version_id)),
        contract=pinned.contract(row) if row.variant else None,
        attempts=[attempt.facts for attempt in attempts],
        inspections=row.inspection_count,
        verifications=row.verification_count,
        cut=_cut(row, attempts),
        said=said or next((attempt.detail for attempt in reversed(attempts) if attempt.detail), ""),
        note=note,
        answer_by=answer_by,
        budget=_budget(changes, row, attempts) if attempts else "",
    )
    changes.touch(row)
    if CASE_RULES[reason].step_status is StepStatus.UNCERTAIN:
        changes.move(row, StepStatus.UNCERTAIN, verb="question", reason=reason.value)
    changes.ask(row, reason, ask(reason, subject))


def _budget(changes: Changes, row: StepRow, attempts: list[AttemptRow]) -> str:
    policy = step_rulings.budgets(changes.workflows[row.workflow_id], row)
    return budget_in_words(step_facts(row, attempts), policy)


def _cut(row: StepRow, attempts: list[AttemptRow]) -> Cut:
    lost = [attempt for attempt in attempts if attempt.applied is None and attempt.ending == Ending.LOST]
    if not lost:
        return Cut.NOT
    told = evidence_log.flight_findings(row.id).get(lost[-1].number)
    return Cut.WHILE_SENDING if told == "sending" else Cut.UNREAD


def end_unallowed(changes: Changes, row: StepRow, why: str) -> None:
    """People do not let it be sent, or nobody said that it may: nothing more is sent, and the workflow winds down.

    What was sent before under an earlier permission may have taken effect, and then only a person can say so.
    """
    changes.workflows[row.workflow_id].winding_down = True
    if row.status is StepStatus.STARTED:
        attempts = attempt_log.of_steps([row.id]).get(row.id, [])
        open_case(changes, row, CaseReason.OUTCOME_UNKNOWN, attempts, note=f"It may not be sent again: {why}.")
    else:
        changes.move(row, StepStatus.ABANDONED, verb="abandon", reason=why)
