"""What the flight recorders of dead worker processes tell, and what follows from it (docs/flight-recorder.md).

Who reads the files has proved that the process is dead and that the record is whole; here it is held against the
attempt: only what was written by the attempt's own worker under its own fence speaks of it. After a crash here the file
is still there and is told again; what is known already changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from checkpoint import doorbell, transitions
from checkpoint.models import Ending, EvidenceKind, WorkerProcess
from checkpoint.outcomes import Facts, Receipt, Refused
from checkpoint.people import ENGINE
from checkpoint.rows import attempt_log, evidence_log, step_rows
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import Standing
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes
from checkpoint.turns import late_reports, pinned

HOW = "the flight recorder of its dead worker settled it"
NEVER_SENT = "its worker was killed before anything was sent"


class Phase(StrEnum):
    """How far a call had come."""

    CLAIMED = "claimed"
    SENDING = "sending"
    ANSWERED = "answered"


@dataclass(frozen=True)
class FlightRecord:
    """What a dead worker had noted of one call.

    Attributes:
        phase: `claimed`: nothing was sent, and nothing will be. `sending`: a byte may have left, no answer was noted.
            `answered`: the provider's answer is `outcome`.
    """

    step_id: uuid.UUID
    fence: int
    attempt_number: int
    phase: Phase
    outcome: Receipt | Refused | None = None


@one_transaction
def hear(worker: uuid.UUID, records: Sequence[FlightRecord]) -> bool:
    """Hears what a process had noted that is proved dead.

    A record of a claim that was never committed speaks of no attempt, and one about an attempt whose outcome is known
    says nothing new: both are passed over.

    Args:
        worker: whose records these are.

    Returns:
        Whether the worker is one of this database's. If it is not, its records belong to another one.
    """
    if not WorkerProcess.objects.filter(pk=worker).exists():
        return False
    steps = [record.step_id for record in records]
    found = step_rows.of_ids(steps) if steps else {}
    if found:
        changes = transitions.lock((row.workflow_id for row in found.values()), actor=ENGINE)
        rows, attempts = step_rows.of_ids(steps), attempt_log.of_steps(steps)
        for record in records:
            _hear_one(changes, worker, record, rows.get(record.step_id), attempts.get(record.step_id, []))
        changes.finish()
        doorbell.ring_on_commit()
    return True


def _hear_one(
    changes: Changes, worker: uuid.UUID, record: FlightRecord, row: StepRow | None, attempts: list[AttemptRow]
) -> None:
    of = (record.attempt_number, record.fence, worker)
    attempt = next((each for each in attempts if (each.number, each.fence, each.worker_id) == of), None)
    if row is None or attempt is None or not _says_something_new(record, attempt):
        return
    finding, facts, operation_id = _words(record)
    evidence = evidence_log.observe(
        row.id, EvidenceKind.FLIGHT_RECORD, finding, facts, source=f"{pinned.tool_version(row.tool_version_id)} flight",
        standing=Standing.COMMITTED if finding == "receipt" else Standing.UNTRUSTED, fence=record.fence,
        attempt_number=record.attempt_number, operation_id=operation_id, now=changes.now,
    )  # fmt: skip
    changes.observe(evidence)
    changes.note(row, "read_flight_record", details={"attempt": record.attempt_number, "finding": finding})
    if finding == "receipt":
        _resolve(changes, attempt, applied=True, detail="its receipt was in the flight recorder of its dead worker")
        late_reports.hear_receipt(changes, evidence, row, attempts, how=HOW)
    elif finding != "sending":
        refused = record.outcome if isinstance(record.outcome, Refused) else None
        why = facts.get("message", NEVER_SENT)
        _resolve(changes, attempt, applied=False, detail=why)
        late_reports.hear_refusal(changes, row, attempts, how=HOW, why=why, refused=refused)


def _says_something_new(record: FlightRecord, attempt: AttemptRow) -> bool:
    """A receipt also contradicts a conclusion that nothing happened; then it is heard."""
    if isinstance(record.outcome, Receipt):
        return attempt.applied is not True
    return attempt.applied is None and attempt.ending in ("", Ending.LOST)


def _resolve(changes: Changes, attempt: AttemptRow, *, applied: bool, detail: str) -> None:
    attempt.end(Ending.LOST, applied=applied, detail=detail, now=changes.now)
    changes.end_attempt(attempt)


def _words(record: FlightRecord) -> tuple[str, Facts, str]:
    match record.outcome:
        case Receipt(operation_id, facts):
            return "receipt", facts, operation_id or ""
        case Refused(message, code):
            return "refused", {"code": code, "message": message[:2000]}, ""
        case None:
            return ("never_sent" if record.phase is Phase.CLAIMED else record.phase.value), {}, ""
