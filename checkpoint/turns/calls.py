"""What passes between the journal and the hands: calls that were claimed, and reports of how they went."""

from __future__ import annotations

import uuid
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime

from checkpoint.models.step import Activity
from checkpoint.outcomes import Outcome
from checkpoint.rows.step_rows import StepRow
from checkpoint.turns import pinned


@dataclass(frozen=True)
class Worker:
    """A worker process under its fresh random id, and the tools it can run as name@version.

    Attributes:
        is_agent: it is the agent of the workflow, which carries out one step itself.
    """

    id: uuid.UUID
    tools: Set[str]
    is_agent: bool = False


@dataclass(frozen=True)
class Claim:
    """Permission to make one call, under a fence.

    Attributes:
        attempt_number: the attempt that the call makes (execute) or asks about (inspect, verify).
        deadline: seconds for the call, counted from before the claim's transaction began.
        claimed_at: database time of the claim.
        facts: canonical JSON of the receipt's facts, for a verification.
        limited: it takes a place for which others may wait.
    """

    step_id: uuid.UUID
    workflow_id: uuid.UUID
    step_name: str
    tool: str
    tool_version: str
    activity: Activity
    fence: int
    attempt_number: int
    idempotency_key: str
    arguments: str
    deadline: float
    claimed_at: datetime
    operation_id: str = ""
    facts: str = ""
    limited: bool = False


@dataclass(frozen=True)
class Report:
    """How a claimed call went."""

    claim: Claim
    outcome: Outcome


def claim_of(row: StepRow, activity: Activity, *, now: datetime, facts: str = "", limited: bool = False) -> Claim:
    """The claim on a step that was just acquired or kept."""
    tool_version = pinned.tool_version(row.tool_version_id)
    return Claim(
        step_id=row.id,
        workflow_id=row.workflow_id,
        step_name=row.name,
        tool=tool_version.name,
        tool_version=tool_version.version,
        activity=activity,
        fence=row.fence,
        attempt_number=row.attempt_count,
        idempotency_key=row.idempotency_key,
        arguments=row.arguments or "",
        deadline=pinned.contract(row).deadline,
        claimed_at=now,
        operation_id=row.operation_id,
        facts=facts,
        limited=limited,
    )
