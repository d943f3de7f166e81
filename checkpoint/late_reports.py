"""Reports under an old fence: refused as writes, kept as evidence, and heard (DESIGN.md section 3, "Late receipts").

A late report is about one attempt. Where nothing was tried since, a receipt settles the step without a person; where
something newer was tried, the effect may have come about twice, and that is a question even on a verified step.
"""

from __future__ import annotations

from checkpoint import evidence_log, pinned, verdicts
from checkpoint.attempt_log import AttemptRow
from checkpoint.calls import Report
from checkpoint.contracts import RecoveryClass
from checkpoint.evidence_log import EvidenceRow
from checkpoint.models import Ending, EvidenceKind
from checkpoint.outcomes import Facts, OutcomeUnknown, Receipt, Refused
from checkpoint.states import CaseReason, Standing, StepStatus
from checkpoint.step_rows import StepRow
from checkpoint.transitions import Changes, overrule

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
        _hear_receipt(changes, report, outcome, evidence, row, attempts)
    elif isinstance(outcome, Refused):
        _hear_refusal(changes, report, outcome, row, attempts)


def _hear_receipt(
    changes: Changes, report: Report, receipt: Receipt, evidence: EvidenceRow, row: StepRow, attempts: list[AttemptRow]
) -> None:
    _resolve(changes, report, attempts, applied=True, detail="its receipt came late")
    if row.attempt_count > report.claim.attempt_number and _could_be_second(receipt, row):
        verdicts.open_case(changes, row, CaseReason.DUPLICATE_EFFECT, attempts)
    elif row.status in UNDECIDED:
        overrule(changes, row, why="a late receipt settled it")
        row.receipt_id, row.operation_id = evidence.id, evidence.operation_id
        row.standing, row.committed_at, row.next_at = Standing.COMMITTED, changes.now, None
        changes.settle_cases(row, "a late receipt settled it")
        changes.move(row, StepStatus.COMMITTED, verb="commit", reason="a late receipt settled it")


def _could_be_second(receipt: Receipt, row: StepRow) -> bool:
    """A provider that honours the key, or names the same operation, made one effect however often it was told to."""
    same_operation = bool(receipt.operation_id) and receipt.operation_id == row.operation_id
    recovery = pinned.contract(row).recovery
    return not same_operation and recovery not in (RecoveryClass.IDEMPOTENT, RecoveryClass.READ_ONLY)


def _hear_refusal(changes: Changes, report: Report, refused: Refused, row: StepRow, attempts: list[AttemptRow]) -> None:
    _resolve(changes, report, attempts, applied=False, detail=f"{refused.code}: {refused.message}")
    all_refused = all(attempt.applied is False for attempt in attempts)
    if all_refused and row.status in (StepStatus.STARTED, StepStatus.UNCERTAIN):
        overrule(changes, row, why="a late refusal settled it")
        changes.settle_cases(row, "a late refusal settled it")
        verdicts.conclude_failed(changes, row, attempts, "a late answer: the provider refused")


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
