"""The sole writer of evidence, in sets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from checkpoint.canonical import canonical, sha256_hex
from checkpoint.models.evidence import EvidenceKind
from checkpoint.models.identifiers import uuid7
from checkpoint.outcomes import Facts
from checkpoint.rows import statements
from checkpoint.states import Standing

FACTS_LIMIT = 16 * 1024


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One fact; see `models.Evidence`."""

    id: uuid.UUID
    step_id: uuid.UUID
    kind: str
    finding: str
    source: str
    standing: str
    attempt_number: int | None
    fence: int
    operation_id: str
    facts: str
    sha256: str
    observed_at: datetime


_COLUMNS = ", ".join(EvidenceRow.__slots__)
_INSERT = f"""
INSERT INTO checkpoint_evidence ({_COLUMNS}) SELECT {_COLUMNS} FROM json_to_recordset(%(evidence)s) AS evidence(
  id uuid, step_id uuid, kind text, finding text, source text, standing text, attempt_number int, fence bigint,
  operation_id text, facts text, sha256 text, observed_at timestamptz)
"""


_OF_FLIGHT = """
SELECT attempt_number, finding FROM checkpoint_evidence WHERE step_id = %(step)s AND kind = %(kind)s ORDER BY id
"""
_FIRST = "SELECT facts FROM checkpoint_evidence WHERE step_id = %(step)s AND finding = %(finding)s ORDER BY id LIMIT 1"


def observe(
    step_id: uuid.UUID,
    kind: EvidenceKind,
    finding: str,
    facts: Any,
    *,
    source: str,
    standing: Standing,
    fence: int,
    attempt_number: int | None,
    operation_id: str = "",
    now: datetime,
) -> EvidenceRow:
    """A new piece of evidence, not yet stored. Facts over 16 KiB canonical are replaced by their size and hash."""
    text = _bounded(facts)
    return EvidenceRow(
        uuid7(), step_id, kind.value, finding, source[:255], standing.value, attempt_number, fence,
        operation_id[:255], text, sha256_hex(text), now,
    )  # fmt: skip


def bounded(facts: Facts) -> Facts:
    """The facts as evidence keeps them."""
    kept: Facts = json.loads(_bounded(facts))
    return kept


def _bounded(facts: Any) -> str:
    text = canonical(facts)
    size = len(text.encode())
    if size <= FACTS_LIMIT:
        return text
    return canonical(
        {"omitted": f"the facts have {size} bytes, the limit is {FACTS_LIMIT}", "sha256": sha256_hex(text)}
    )


def facts_of(evidence_id: uuid.UUID | None) -> str:
    """The facts of one stored piece of evidence, as canonical JSON."""
    (found,) = statements.fetch("SELECT facts FROM checkpoint_evidence WHERE id = %(id)s", id=evidence_id)
    return str(found[0])


def flight_findings(step_id: uuid.UUID) -> dict[int, str]:
    """What flight recorders told about a step's attempts, by the attempt's number."""
    return dict(statements.fetch(_OF_FLIGHT, step=step_id, kind=EvidenceKind.FLIGHT_RECORD.value))


def first_facts(step_id: uuid.UUID, finding: str) -> str | None:
    """The facts of the first piece of evidence about a step with this finding, as canonical JSON; None without one."""
    found = statements.fetch(_FIRST, step=step_id, finding=finding)
    return str(found[0][0]) if found else None


def insert(evidence: Sequence[EvidenceRow]) -> None:
    """Stores new evidence."""
    statements.change(_INSERT, evidence=statements.rows(evidence))
