"""What is asked for before a step, or with it the rest of a plan, may start."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from checkpoint.canonical import canonical, sha256_hex
from checkpoint.gates.drift import Present
from checkpoint.gates.rulings import ApprovalRule, Scope
from checkpoint.models.identifiers import uuid7
from checkpoint.rows import statements
from checkpoint.rows.approval_log import NewApproval
from checkpoint.rows.step_rows import StepRow


def request(
    rows: Sequence[StepRow], rule: ApprovalRule, present: Present, prompt_version: str, *, now: datetime
) -> list[NewApproval]:
    """One new request, not yet stored: a row for each step, the first of which is the one that is asked about.

    Args:
        present, prompt_version: what there is now; if it changes, what is allowed counts no longer.
    """
    policy_version_id = present.policy_version_id
    asked_about = uuid7()
    shares = [(row.name, content_hash(row), row.tool_version_id) for row in rows]
    plan_hash = hash_of_plan(policy_version_id, shares) if rule.scope is Scope.PLAN else ""
    text = statements.rows([rule.to_json()])[1:-1]
    return [
        NewApproval(
            id=asked_about if index == 0 else uuid7(),
            workflow_id=row.workflow_id,
            step_id=row.id,
            part_of_id=asked_about if index else None,
            plan_hash=plan_hash,
            rule=text,
            arguments_hash=content_hash(row),
            policy_version_id=policy_version_id,
            tool_version_id=row.tool_version_id,
            prompt_version=prompt_version,
            newest_tool_id=present.tool(row),
            requested_at=now,
            expires_at=now + timedelta(seconds=rule.expires_seconds),
        )
        for index, row in enumerate(rows)
    ]


def content_hash(row: StepRow) -> str:
    """Of the arguments; while they wait for earlier results, of their template, which fixes how they are made."""
    return row.arguments_hash or template_hash(row)


def template_hash(row: StepRow) -> str:
    """Of the arguments as they were planned."""
    return sha256_hex(row.template)


def hash_of_plan(policy_version_id: uuid.UUID, shares: Iterable[tuple[str, str, uuid.UUID]]) -> str:
    """Names everything that an approval of a plan allows.

    Args:
        shares: name, content's hash and tool version of each step, first of the one that is asked about.
    """
    steps = [[name, content, str(tool_version_id)] for name, content, tool_version_id in shares]
    return sha256_hex(canonical({"policy_version": str(policy_version_id), "steps": steps}))
