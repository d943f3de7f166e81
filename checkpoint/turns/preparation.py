"""Writing a step ahead: its arguments resolved, validated and fixed, its key taken. Part of the claim."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from checkpoint.canonical import idempotency_key, intent_key, sha256_hex
from checkpoint.errors import RecordDamaged, ReferenceUnresolved, SubmissionInvalid
from checkpoint.gates import step_rulings
from checkpoint.models.identifiers import uuid7
from checkpoint.planning.argument_schemas import match_variant, prepare_arguments
from checkpoint.planning.references import resolve, scan
from checkpoint.rows import waiver_log
from checkpoint.rows.step_rows import StepRow
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.states import CaseReason
from checkpoint.turns import intents, pinned

_RESULTS = """
SELECT step.name, evidence.operation_id, evidence.facts, evidence.sha256
FROM checkpoint_step AS step JOIN checkpoint_evidence AS evidence ON evidence.id = step.receipt_id
WHERE step.workflow_id = %s AND step.position < %s AND step.name = ANY(%s)
"""

_TAKE_KEY = """
INSERT INTO checkpoint_intent (id, team_id, owner_id, tool, name, key, arguments_hash)
VALUES (%s, %s, %s, '', '', %s, %s)
ON CONFLICT (key) DO NOTHING
"""
_WRITE_AHEAD = """
UPDATE checkpoint_step SET arguments = %s, arguments_hash = %s, idempotency_key = %s, variant = %s
WHERE id = %s AND arguments IS NULL
"""


@dataclass(frozen=True)
class Problem:
    """Why a step cannot be prepared.

    Attributes:
        lacking: the waived steps to whose results it refers; there will never be any.
    """

    reason: CaseReason
    note: str
    lacking: Sequence[str] = ()


def prepare(row: StepRow, workflow: WorkflowRow) -> Problem | None:
    """Fixes arguments, hash, key, variant and budget of a planned step, and stores them with its intent.

    Returns:
        None, or what stands in the way; then nothing was written.
    """
    tool_version = pinned.tool_version(row.tool_version_id)
    try:
        value = resolve(json.loads(row.template), _input(row.workflow_id), _results(row))
        arguments = prepare_arguments(tool_version.schema, value)
        variant = match_variant(tool_version.variants, json.loads(arguments))
    except ReferenceUnresolved as error:
        return Problem(CaseReason.PLAN_INVALID, str(error), waiver_log.waived_among(row.workflow_id, _names(row)))
    except SubmissionInvalid as error:
        return Problem(CaseReason.PLAN_INVALID, str(error))
    except RecordDamaged as error:
        return Problem(CaseReason.RECORD_DAMAGED, str(error))
    row.arguments, row.arguments_hash = arguments, sha256_hex(arguments)
    row.variant = variant
    row.idempotency_key = _key(row, tool_version.name, arguments, workflow)
    row.attempts_allowed = step_rulings.budgets(workflow, row).max_attempts
    if refused := _take(row, tool_version.name, arguments, workflow.team_id):
        row.arguments, row.arguments_hash, row.variant, row.idempotency_key = None, "", "", ""
        return Problem(CaseReason.PLAN_INVALID, refused)
    with connection.cursor() as cursor:
        cursor.execute(_WRITE_AHEAD, [row.arguments, row.arguments_hash, row.idempotency_key, row.variant, row.id])
    return None


def _key(row: StepRow, tool: str, arguments: str, workflow: WorkflowRow) -> str:
    if row.intent_name:
        return intent_key(team_id=str(workflow.team_id), tool=tool, intent=row.intent_name, arguments=arguments)
    return idempotency_key(workflow_id=str(row.workflow_id), step_name=row.name, tool=tool, arguments=arguments)


def _take(row: StepRow, tool: str, arguments: str, team_id: uuid.UUID) -> str:
    """Takes the key, or joins those who want what the step names; why not, where it cannot be had."""
    if row.intent_name:
        wish = intents.wish(row.id, tool=tool, name=row.intent_name, key=row.idempotency_key, arguments=arguments)
        return intents.take([wish], team_id=team_id).get(row.id, "")
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_KEY, [uuid7(), team_id, row.id, row.idempotency_key, row.arguments_hash])
        return "" if cursor.rowcount else "An edit put this very call aside, and its key is closed."


def _input(workflow_id: uuid.UUID) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT input FROM checkpoint_workflow WHERE id = %s", [workflow_id])
        return json.loads(cursor.fetchone()[0])


def _results(row: StepRow) -> dict[str, Any]:
    """The results that the template refers to.

    Raises:
        RecordDamaged: a stored result does not match its hash (S03).
    """
    with connection.cursor() as cursor:
        cursor.execute(_RESULTS, [row.workflow_id, row.position, _names(row)])
        return {name: _document(name, *stored) for name, *stored in cursor.fetchall()}


def _names(row: StepRow) -> list[str]:
    """The steps to whose results the template refers."""
    references, _ = scan(json.loads(row.template))
    return list({reference.step for reference in references if reference.step})


def _document(name: str, operation_id: str, facts: str, sha256: str) -> dict[str, Any]:
    if sha256_hex(facts) != sha256:
        raise RecordDamaged(f"the stored result of step {name} does not match its hash")
    return {"operation_id": operation_id or None, "facts": json.loads(facts)}
