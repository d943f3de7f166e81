"""The first half of a turn: write down what the hands brought back, each under its fence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkpoint import fencing
from checkpoint.actions import Ask, ConcludeCommitted, ConcludeFailed, Wait
from checkpoint.decide import after_inspection, after_invisible
from checkpoint.gates import step_rulings
from checkpoint.models import Activity, Ending, EvidenceKind
from checkpoint.outcomes import (
    Absent,
    Facts,
    Found,
    Inconclusive,
    NotVisible,
    OutcomeUnknown,
    Pending,
    Receipt,
    Refused,
    Visible,
)
from checkpoint.rows import attempt_log, evidence_log, step_rows
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.evidence_log import EvidenceRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CaseReason, Standing, StepStatus
from checkpoint.transitions import Changes
from checkpoint.turns import late_reports, pinned
from checkpoint.turns.calls import Claim, Report, claim_of
from checkpoint.turns.verdicts import conclude_failed, conclude_verified, heed, open_case, step_facts


def record(changes: Changes, reports: Sequence[Report]) -> list[Claim]:
    """Records the reports; returns the verifications that the same holder goes on with under its fence."""
    if not reports:
        return []
    rows = step_rows.of_ids({report.claim.step_id for report in reports})
    attempts = attempt_log.of_steps(rows)
    kept = []
    for report in reports:
        row = rows[report.claim.step_id]
        recorder = _Recorder(changes, report, row, attempts.get(row.id, []))
        if recorder.holds_fence():
            kept.append(recorder.record())
        else:
            late_reports.keep(changes, report, row, recorder.attempts)
    return [claim for claim in kept if claim is not None]


@dataclass(frozen=True)
class _Recorder:
    changes: Changes
    report: Report
    row: StepRow
    attempts: list[AttemptRow]

    def holds_fence(self) -> bool:
        """Whether the report was made under the present fence; only then is it a write."""
        return self.report.claim.fence == self.row.fence and self.row.activity == self.report.claim.activity

    def record(self) -> Claim | None:
        """Writes the outcome; the guards carry what was read."""
        self.changes.touch(self.row)
        match self.report.outcome:
            case Receipt() as receipt:
                return self._receipt(receipt)
            case Refused() as refused:
                self._refused(refused)
            case OutcomeUnknown(message):
                self._unknown(message)
            case Found() | Absent() | Pending() | Inconclusive():
                return self._inspected()
            case Visible(facts):
                self._visible(facts)
            case NotVisible(message, facts):
                self._not_visible(message, facts)
        return None

    def _receipt(self, receipt: Receipt) -> Claim | None:
        self._end_attempt(Ending.RECEIPT, applied=True, detail="")
        if not receipt.arguments_match:
            self._observe(EvidenceKind.RESPONSE, "conflict", receipt.facts, Standing.COMMITTED, receipt.operation_id)
            fencing.release(self.row)
            open_case(self.changes, self.row, CaseReason.CONFLICTING_EFFECT, self.attempts)
            return None
        return self._commit(receipt, EvidenceKind.RESPONSE, "receipt")

    def _commit(self, receipt: Receipt, kind: EvidenceKind, finding: str) -> Claim | None:
        """The effect took place: verify it under the same fence, or say that only a receipt is known."""
        row = self.row
        evidence = self._observe(kind, finding, receipt.facts, Standing.COMMITTED, receipt.operation_id)
        row.receipt_id = evidence.id
        row.operation_id = (receipt.operation_id or "")[:255]
        row.committed_at = self.changes.now
        row.standing = Standing.COMMITTED
        row.next_at = None
        self.changes.move(row, StepStatus.COMMITTED, verb="commit", attempt=self.report.claim.attempt_number)
        if not pinned.contract(row).can_verify:
            self._stand_on(receipt)
        elif row.by_agent:
            fencing.release(row)  # a worker reads it back, by another path than the agent's
        else:
            fencing.keep(row, activity=Activity.VERIFY, now=self.changes.now)
            return claim_of(row, Activity.VERIFY, now=self.changes.now, facts=evidence.facts)
        return None

    def _stand_on(self, receipt: Receipt) -> None:
        """Nothing of ours reads the outcome. What the agent that acted read itself is its word, like a person's."""
        if receipt.reading is None:
            conclude_verified(self.changes, self.row)
            return
        self._observe(EvidenceKind.VERIFICATION, "read_by_agent", receipt.reading, Standing.ATTESTED)
        conclude_verified(self.changes, self.row, Standing.ATTESTED)

    def _refused(self, refused: Refused) -> None:
        """Proof about this attempt alone: earlier ones that nobody knows of still have to be inspected."""
        row = self.row
        fencing.release(row)
        self._end_attempt(Ending.REFUSED, applied=False, detail=f"{refused.code}: {refused.message}")
        self._observe(EvidenceKind.RESPONSE, "refused", {"code": refused.code, "message": refused.message[:2000]})
        if all(attempt.applied is False for attempt in self.attempts):
            conclude_failed(self.changes, row, self.attempts, "the provider refused every attempt")
        heed(self.changes, row, self.attempts, refused)

    def _unknown(self, message: str) -> None:
        fencing.release(self.row)
        self._end_attempt(Ending.UNKNOWN, applied=None, detail=message)
        self._observe(EvidenceKind.RESPONSE, "unknown", {"message": message[:2000]})

    def _inspected(self) -> Claim | None:
        answer = self.report.outcome
        assert isinstance(answer, Found | Absent | Pending | Inconclusive)
        row = self.row
        row.inspection_count += 0 if isinstance(answer, Absent) else 1
        facts = step_facts(row, self.attempts)
        policy = step_rulings.budgets(self.changes.workflows[row.workflow_id], row)
        verdict = after_inspection(answer, self.report.claim.claimed_at, facts, pinned.contract(row), policy)
        if isinstance(answer, Found) and isinstance(verdict, ConcludeCommitted):
            self._end_attempt(Ending.LOST, applied=True, detail="found by lookup")
            return self._commit(answer.receipt, EvidenceKind.INSPECTION, "found")
        fencing.release(row)
        self._observe(EvidenceKind.INSPECTION, *_inspection_words(answer))
        self._follow(verdict)
        return None

    def _follow(self, verdict: ConcludeCommitted | ConcludeFailed | Ask | Wait) -> None:
        match verdict:
            case ConcludeFailed(why):
                conclude_failed(self.changes, self.row, self.attempts, why)
            case Ask(reason):
                open_case(self.changes, self.row, reason, self.attempts)
            case Wait(until):
                self.row.next_at = until

    def _visible(self, facts: Facts) -> None:
        self._observe(EvidenceKind.VERIFICATION, "visible", facts, Standing.VERIFIED)
        conclude_verified(self.changes, self.row, Standing.VERIFIED)

    def _not_visible(self, message: str, facts: Facts) -> None:
        row = self.row
        row.verification_count += 1
        fencing.release(row)
        self._observe(EvidenceKind.VERIFICATION, "not_visible", facts | {"message": message[:2000]})
        policy = step_rulings.budgets(self.changes.workflows[row.workflow_id], row)
        verdict = after_invisible(step_facts(row, self.attempts), row.verification_count, policy, self.changes.now)
        if isinstance(verdict, Ask):
            open_case(self.changes, row, verdict.reason, self.attempts, said=message)
        else:
            row.next_at = verdict.until

    def _end_attempt(self, ending: Ending, *, applied: bool | None, detail: str) -> None:
        for attempt in self.attempts:
            if attempt.number == self.report.claim.attempt_number:
                attempt.end(ending, applied=applied, detail=detail, now=self.changes.now)
                self.changes.end_attempt(attempt)

    def _observe(
        self,
        kind: EvidenceKind,
        finding: str,
        facts: Facts,
        standing: Standing = Standing.UNTRUSTED,
        operation_id: str | None = None,
    ) -> EvidenceRow:
        claim = self.report.claim
        evidence = evidence_log.observe(
            self.row.id, kind, finding, facts, source=f"{claim.tool}@{claim.tool_version} {claim.activity.value}",
            standing=standing, fence=claim.fence, attempt_number=claim.attempt_number,
            operation_id=operation_id or "", now=self.changes.now,
        )  # fmt: skip
        self.changes.observe(evidence)
        return evidence


def _inspection_words(answer: Found | Absent | Pending | Inconclusive) -> tuple[str, Facts]:
    match answer:
        case Found(receipt):
            return "found_other", receipt.facts | {"operation_id": receipt.operation_id}
        case Absent(facts):
            return "absent", facts
        case Pending(facts):
            return "pending", facts
        case Inconclusive(message):
            return "inconclusive", {"message": message[:2000]}
