"""The sole writer of cases, in sets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from checkpoint.explaining.questions import Question
from checkpoint.models.identifiers import uuid7
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CaseReason, CaseStatus


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One question; see `models.Case`. `step` is read when the case is stored, after its last move."""

    id: uuid.UUID
    step: StepRow
    reason: str
    sentence: str
    findings: str
    opened_at: datetime


def ask(step: StepRow, reason: CaseReason, question: Question, *, now: datetime) -> CaseRow:
    """A new case, not yet stored."""
    return CaseRow(uuid7(), step, reason.value, question.sentence, json.dumps(question.findings()), now)


def insert(cases: Sequence[CaseRow]) -> None:
    """Stores new cases."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO checkpoint_case (id, workflow_id, step_id, reason, sentence, findings, status, step_version,"
            " arguments_hash, opened_at, closing) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, '')",
            [
                (case.id, case.step.workflow_id, case.step.id, case.reason, case.sentence, case.findings,
                 CaseStatus.OPEN, case.step.version, case.step.arguments_hash, case.opened_at)
                for case in cases
            ],
        )  # fmt: skip


def settle(settlements: Sequence[tuple[uuid.UUID, str]], *, now: datetime) -> None:
    """Closes open cases of steps that evidence or another way has moved on; given as (step, how)."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE checkpoint_case SET status = %s, closed_at = %s, closing = %s"
            " WHERE step_id = %s AND status = %s AND reason <> %s",
            [
                (CaseStatus.SETTLED, now, how, step_id, CaseStatus.OPEN, CaseReason.DUPLICATE_EFFECT)
                for step_id, how in settlements
            ],
        )
