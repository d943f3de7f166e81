"""Reports under an old fence: refused as writes, kept as evidence, and heard (DESIGN.md section 3, "Late receipts").

A late report is about one attempt. Where nothing was tried since, a receipt settles the step without a person; where
something newer was tried, the effect may have come about twice, and that is a question even on a verified step.
"""

from __future__ import annotations

from checkpoint.contracts import RecoveryClass
from checkpoint.models import Ending, EvidenceKind
from checkpoint.outcomes import Facts, OutcomeUnknown, Receipt, Refused
from checkpoint.rows import evidence_log
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.evidence_log import EvidenceRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CaseReason, Standing, StepStatus
from checkpoint.transitions import Changes, overrule
from checkpoint.turns import pinned, verdicts
from checkpoint.turns.calls import Report

LATE_RECEIPT = "a late receipt settled it"
UNDECIDED = (StepStatus.STARTED, StepStatus.UNCERTAIN, StepStatus.FAILED)


def keep(changes: Changes, report: Report, row: StepRow, attempts: list[AttemptRow]) -> None:
    """Keeps a late report. Late lookups and readings say nothing that a fresh one does not, and are dropped."""
    outcome = report.outcome
    changes.note(row, "refuse_late_report", details={"fence": report.claim.fence, "present_fence": row.fence})
    if not isinstance(outcome, Receipt | Refused | OutcomeUnknown):
        return
    evidence = _evidence(changes, report, row)
    changes.observe(evidence)
    if isinstance(outcome, Receipt):
        _resolve(changes, report, attempts, applied=True, detail="its receipt came late")
        hear_receipt(changes, evidence, row, attempts, how=LATE_RECEIPT)
    elif isinstance(outcome, Refused):
        _resolve(changes, report, attempts, applied=False, detail=f"{outcome.code}: {outcome.message}")
        why = "a late answer: the provider refused"
        hear_refusal(changes, row, attempts, how="a late refusal settled it", why=why, refused=outcome)


def hear_receipt(
    changes: Changes, evidence: EvidenceRow, row: StepRow, attempts: list[AttemptRow], *, how: str
) -> None:
    """What a receipt means that comes under an old fence. Its attempt is resolved already.

    Args:
        how: said where it settles the step.
    """
    if row.attempt_count > (evidence.attempt_number or 0) and _could_be_second(evidence.operation_id, row):
        verdicts.open_case(changes, row, CaseReason.DUPLICATE_EFFECT, attempts)
    elif row.status in UNDECIDED:
        overrule(changes, row, why=how)
        row.receipt_id, row.operation_id = evidence.id, evidence.operation_id
        row.standing, row.committed_at, row.next_at = Standing.COMMITTED, changes.now, None
        changes.settle_cases(row, how)
        changes.move(row, StepStatus.COMMITTED, verb="commit", reason=how)


def _could_be_second(operation_id: str, row: StepRow) -> bool:
    """A provider that honours the key, or names the same operation, made one effect however often it was told to."""
    same_operation = bool(operation_id) and operation_id == row.operation_id
    recovery = pinned.contract(row).recovery
    return not same_operation and recovery not in (RecoveryClass.IDEMPOTENT, RecoveryClass.READ_ONLY)


def hear_refusal(
    changes: Changes, row: StepRow, attempts: list[AttemptRow], *, how: str, why: str, refused: Refused | None
) -> None:
    """What it means that an attempt is proved, under an old fence, not to have taken effect. It is resolved already.

    Args:
        how: said where it settles the step.
        why: said of the step then.
        refused: what the provider said; None where nothing was sent.
    """
    all_refused = all(attempt.applied is False for attempt in attempts)
    if all_refused and row.status in (StepStatus.STARTED, StepStatus.UNCERTAIN):
        overrule(changes, row, why=how)
        changes.settle_cases(row, how)
        verdicts.conclude_failed(changes, row, attempts, why)
        if refused is not None:
            verdicts.heed(changes, row, attempts, refused)


def _resolve(changes: Changes, report: Report, attempts: list[AttemptRow], *, applied: bool, detail: str) -> None:
    for attempt in attempts:
        if attempt.number == report.claim.attempt_number:
            ending = Ending.RECEIPT if applied else Ending.REFUSED
            attempt.end(ending, applied=applied, detail=detail, now=changes.now)
            changes.end_attempt(attempt)


def _evidence(changes: Changes, report: Report, row: StepRow) -> EvidenceRow:
    claim = report.claim
    finding, facts, operation_id = _words(report)
    return evidence_log.observe(
        row.id, EvidenceKind.LATE_RECEIPT, finding, facts, source=f"{claim.tool}@{claim.tool_version} late",
        standing=Standing.COMMITTED if finding == "receipt" else Standing.UNTRUSTED, fence=claim.fence,
        attempt_number=claim.attempt_number, operation_id=operation_id, now=changes.now,
    )  # fmt: skip


def _words(report: Report) -> tuple[str, Facts, str]:
    match report.outcome:
        case Receipt(operation_id, facts):
            return "receipt", facts, operation_id or ""
        case Refused(message, code):
            return "refused", {"code": code, "message": message[:2000]}, ""
        case OutcomeUnknown(message):
            return "unknown", {"message": message[:2000]}, ""
        case other:
            raise TypeError(f"not an answer of an execution: {other!r}")
