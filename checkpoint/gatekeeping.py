"""Asks the policy in force before a step starts, in the transaction that starts it (S12, S13, S17)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from checkpoint import approval_log, pinned, rulings, statements
from checkpoint.approval_log import ApprovalRow
from checkpoint.gating import Gate, Go, Hold, Pins, Request, TimedOut, pass_gate
from checkpoint.rulings import Ruling, StepDescription
from checkpoint.states import ApprovalStatus, StepStatus, WorkflowStatus
from checkpoint.step_rows import StepRow
from checkpoint.transitions import Changes

_IN_FORCE = "SELECT id FROM checkpoint_policyversion ORDER BY number DESC LIMIT 1"
_DESCRIPTION = """
SELECT workflow.kind, team.slug FROM checkpoint_workflow AS workflow
JOIN checkpoint_team AS team ON team.id = workflow.team_id WHERE workflow.id = %(id)s
"""


@dataclass
class Gatekeeper:
    """The gate of one turn; what it needs of the policy in force is read once, after the locks."""

    changes: Changes
    _known: dict[uuid.UUID, tuple[str, str]] = field(default_factory=dict)

    def admits(self, row: StepRow) -> bool:
        """Whether the prepared step may start now. If not, what it waits for is written down."""
        if not self._has_rules and self.changes.workflows[row.workflow_id].status != WorkflowStatus.AWAITING_APPROVAL:
            return True
        ruling = self._ruling(row)
        approval = approval_log.newest_of_steps([row.id]).get(row.id)
        pins = Pins(row.arguments_hash, self._pinned_policy(ruling, approval), row.tool_version_id)
        gate = pass_gate(ruling.approval, approval.facts if approval else None, pins, self.changes.now)
        return self._follow(gate, row, ruling, approval)

    def needs_review(self, row: StepRow) -> bool:
        """Whether a person must look because the policy changed since the workflow was planned."""
        planned = self.changes.workflows[row.workflow_id].policy_version_id
        return self._has_rules and planned != self.in_force and self._ruling(row).drift == "review"

    @cached_property
    def in_force(self) -> uuid.UUID:
        """The newest policy version."""
        ((policy_version_id,),) = statements.fetch(_IN_FORCE)
        return uuid.UUID(str(policy_version_id))

    @property
    def _rules(self) -> dict[str, Any]:
        return pinned.rules(self.in_force)

    @property
    def _has_rules(self) -> bool:
        return bool(self._rules.get("rules"))

    def _pinned_policy(self, ruling: Ruling, approval: ApprovalRow | None) -> uuid.UUID:
        """Where the policy says that its own change does not matter, an approval under the earlier one holds."""
        if ruling.drift == "continue" and approval is not None:
            return approval.facts.pins.policy_version_id
        return self.in_force

    def _ruling(self, row: StepRow) -> Ruling:
        return rulings.ruling(self._rules, self._describe(row))

    def _describe(self, row: StepRow) -> StepDescription:
        if row.workflow_id not in self._known:
            ((kind, team),) = statements.fetch(_DESCRIPTION, id=row.workflow_id)
            self._known[row.workflow_id] = kind, team
        kind, team = self._known[row.workflow_id]
        tool = pinned.tool_version(row.tool_version_id).name
        return StepDescription(tool, pinned.contract(row).reversibility.value, kind, team, row.arguments_value)

    def _follow(self, gate: Gate, row: StepRow, ruling: Ruling, approval: ApprovalRow | None) -> bool:
        match gate:
            case Go(consume, ends):
                self._end(row, ends, "the policy asks nothing any more")
                if consume and approval is not None:
                    approval_log.consume(approval, row, now=self.changes.now)
                    self.changes.note(row, "use_approval", details={"approval": str(approval.id)})
                return True
            case Request(ends):
                self._end(row, ends, "what it was given for has changed, or its time is over")
                if ruling.approval is not None:
                    request = approval_log.request(row, ruling.approval, self.in_force, now=self.changes.now)
                    self.changes.request_approval(row, request)
            case Hold(until):
                self.changes.touch(row).next_at = until
            case TimedOut():
                self._time_out(row, ruling)
        return False

    def _end(self, row: StepRow, status: ApprovalStatus | None, how: str) -> None:
        if status is not None:
            approval_log.end([row.id], status, how, now=self.changes.now)
            self.changes.note(row, "end_approval", after=status.value, reason=how)

    def _time_out(self, row: StepRow, ruling: Ruling) -> None:
        """Nobody answered in time: ask others, or end the step and what follows. Silence never allows anything."""
        self._end(row, ApprovalStatus.EXPIRED, "nobody answered in time")
        if ruling.approval is not None and ruling.approval.on_timeout == "escalate":
            request = approval_log.request(row, ruling.approval, self.in_force, now=self.changes.now)
            self.changes.request_approval(row, request)
            return
        self.changes.workflows[row.workflow_id].winding_down = True
        self.changes.move(row, StepStatus.ABANDONED, verb="abandon", reason="its approval expired unanswered")
