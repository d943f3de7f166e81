"""Steps that wait for a time which their arguments name: the time is fixed once, on record, when their turn comes.

Such a step stays `prepared` with its `next_at`: nobody holds it, no hand and no lease is spent on it, and a workflow
that is abandoned meanwhile ends at once.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from checkpoint.contracts import Contract
from checkpoint.models import EvidenceKind
from checkpoint.rows import evidence_log
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import Standing, StepStatus
from checkpoint.transitions import Changes
from checkpoint.turns import pinned

FINDING = "waits"


def has_come(changes: Changes, row: StepRow) -> bool:
    """Whether a prepared step may go on. If not, its time is on record and the step waits for it.

    Raises:
        LookupError, TypeError, ValueError: the arguments have no such time, though the contract says so.
    """
    contract = pinned.contract(row)
    if not contract.waits or row.status is not StepStatus.PREPARED:
        return True
    until = _on_record(row) or _fix(changes, row, contract)
    if until <= changes.now:
        return True
    changes.touch(row).next_at = until
    return False


def _on_record(row: StepRow) -> datetime | None:
    facts = evidence_log.first_facts(row.id, FINDING)
    return None if facts is None else datetime.fromisoformat(json.loads(facts)["until"])


def _fix(changes: Changes, row: StepRow, contract: Contract) -> datetime:
    """A duration counts from now, by the database's clock, however often the step is looked at afterwards."""
    until = _time_named(contract, row.arguments_value, changes.now).astimezone(UTC)
    changes.touch(row)
    evidence = evidence_log.observe(
        row.id, EvidenceKind.INSPECTION, FINDING, {"until": until.isoformat()}, source="the database's clock",
        standing=Standing.VERIFIED, fence=row.fence, attempt_number=None, now=changes.now,
    )  # fmt: skip
    changes.observe(evidence)
    changes.note(row, "wait", details={"until": until.isoformat()})
    return until


def _time_named(contract: Contract, arguments: Any, now: datetime) -> datetime:
    if contract.starts_after:
        return now + timedelta(seconds=arguments[contract.starts_after])
    return datetime.fromisoformat(arguments[contract.starts_at])
