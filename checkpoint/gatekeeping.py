"""Asks the policy in force before a step starts, in the transaction that starts it (S12, S13, S17)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from checkpoint import approval_log, approval_requests, pinned, rulings, statements, step_rows, step_rulings, verdicts
from checkpoint.approval_log import ApprovalRow
from checkpoint.contracts import Reversibility
from checkpoint.gating import Gate, Go, Hold, Pins, Request, SentBack, TimedOut, pass_gate
from checkpoint.rulings import ApprovalRule, DriftAnswer, OnTimeout, Ruling, Scope
from checkpoint.states import OPEN_REQUESTS, ApprovalStatus, StepStatus
from checkpoint.step_rows import StepRow
from checkpoint.transitions import Changes

_IN_FORCE = "SELECT id FROM checkpoint_policyversion ORDER BY number DESC LIMIT 1"
_NEVER_SENT = (StepStatus.PLANNED, StepStatus.PREPARED)
_UNANSWERED = "nobody answered in time"


@dataclass
class Gatekeeper:
    """The gate of one turn; what it needs is read after the locks, once for all steps.

    Attributes:
        step_ids: the steps whose turn it is.
        asked: the steps for which this turn asked; the requests are stored at its end.
    """

    changes: Changes
    step_ids: Sequence[uuid.UUID]
    asked: set[uuid.UUID] = field(default_factory=set)
    _approvals: dict[uuid.UUID, ApprovalRow] | None = None

    def admits(self, row: StepRow) -> bool:
        """Whether the prepared step may start now. If not, what it waits for is written down.

        Raises:
            RecordDamaged: the policy in force cannot be read.
        """
        workflow = self.changes.workflows[row.workflow_id]
        if not self._has_rules and not workflow.open_requests:
            return True
        if row.id in self.asked or (workflow.winding_down and row.status is not StepStatus.STARTED):
            return False
        ruling, approval = self._ruling(row), self._newest(row)
        facts = approval.facts if approval else None
        gate = pass_gate(ruling.approval, facts, self._pins(row, ruling, approval), self.changes.now)
        return self._follow(gate, row, ruling.approval, approval)

    def needs_review(self, row: StepRow) -> bool:
        """Whether a person must look because the policy changed since the workflow was planned. Raises as `admits`."""
        planned = self.changes.workflows[row.workflow_id].policy_version_id
        if not self._has_rules or planned == self.in_force:
            return False
        return self._ruling(row).drift.policy is DriftAnswer.REVIEW

    @cached_property
    def in_force(self) -> uuid.UUID:
        """The newest policy version."""
        ((policy_version_id,),) = statements.fetch(_IN_FORCE)
        return uuid.UUID(str(policy_version_id))

    @cached_property
    def _has_rules(self) -> bool:
        return pinned.has_rules(self.in_force)

    def _ruling(self, row: StepRow) -> Ruling:
        return step_rulings.ruling(self.in_force, self.changes.workflows[row.workflow_id], row)

    def _newest(self, row: StepRow) -> ApprovalRow | None:
        if self._approvals is None:
            self._approvals = approval_log.newest_of_steps(self.step_ids)
        return self._approvals.get(row.id)

    def _pins(self, row: StepRow, ruling: Ruling, approval: ApprovalRow | None) -> Pins:
        """What would be sent now; where the policy says that its own change does not matter, as under the earlier."""
        scope = ruling.approval.scope if ruling.approval else Scope.STEP
        pins = Pins(row.arguments_hash, self.in_force, row.tool_version_id, scope)
        if approval is None:
            return pins
        given = approval.facts.pins
        if ruling.drift.policy is DriftAnswer.CONTINUE:
            pins = replace(pins, policy_version_id=given.policy_version_id)
        # Whoever allowed the plan allowed the arguments that its template makes of earlier results.
        if scope is Scope.PLAN and given.content_hash == approval_requests.template_hash(row):
            pins = replace(pins, content_hash=given.content_hash)
        return pins

    def _follow(self, gate: Gate, row: StepRow, rule: ApprovalRule | None, approval: ApprovalRow | None) -> bool:
        match gate:
            case Go(consume, ends):
                self._end(row, ends, "the policy asks nothing any more")
                if consume and approval is not None:
                    self._consume(row, approval)
                return True
            case Request(ends):
                self._end(row, ends, "what it was given for has changed, or its time is over")
                self._ask(row, rule)
            case Hold(until):
                self.changes.touch(row).next_at = until
            case SentBack():
                pass
            case TimedOut():
                return approval is not None and self._time_out(row, rule, approval)
        return False

    def _consume(self, row: StepRow, approval: ApprovalRow) -> None:
        hashes = [row.arguments_hash]
        if approval.facts.pins.scope is Scope.PLAN:
            hashes.append(approval_requests.template_hash(row))
        approval_log.consume(approval, hashes, now=self.changes.now)
        self.changes.note(row, "use_approval", details={"approval": str(approval.id)})

    def _end(self, row: StepRow, status: ApprovalStatus | None, how: str, *, spare: uuid.UUID | None = None) -> None:
        if status is not None:
            approval_log.end([row.id], status, how, now=self.changes.now, spare=spare)
            self.changes.note(row, "end_approval", after=status.value, reason=how)
            self._approvals = None

    def _ask(self, row: StepRow, rule: ApprovalRule | None, *, escalated: bool = False) -> None:
        if rule is None:
            return
        rows = [row]
        if rule.scope is Scope.PLAN:
            rows, rule = self._plan(row, rule)
        if escalated:
            rule = replace(rule, groups=rule.escalate_to)
        self.changes.request_approval(row, approval_requests.request(rows, rule, self.in_force, now=self.changes.now))
        self.asked.update(one.id for one in rows)

    def _plan(self, row: StepRow, rule: ApprovalRule) -> tuple[list[StepRow], ApprovalRule]:
        """The step and those behind it that the policy wants allowed together with it; the strictest rule governs.

        What is already allowed, or asked about, is not asked again (S24).
        """
        self.changes.write_steps()
        others = [one for one in step_rows.of_workflows([row.workflow_id], _NEVER_SENT) if one.id != row.id]
        newest = approval_log.newest_of_steps(one.id for one in others)
        open_now = {approval.step_id for approval in newest.values() if approval.facts.status in OPEN_REQUESTS}
        workflow = self.changes.workflows[row.workflow_id]
        judged = [
            (one, (step_rulings.describe(workflow, one), self._ruling(one)))
            for one in (row, *sorted(others, key=lambda one: (one.position, one.name)))
            if one.id not in open_now
        ]
        covered = [one for one in judged if one[1][1].approval and one[1][1].approval.scope is Scope.PLAN]
        return [one for one, _ in covered], rulings.governing([step for _, step in covered]) or rule

    def _time_out(self, row: StepRow, rule: ApprovalRule | None, approval: ApprovalRow) -> bool:
        """Nobody answered in time. Silence allows nothing that cannot be undone, whatever a policy says."""
        undoable = pinned.contract(row).reversibility is not Reversibility.IRREVERSIBLE
        if approval.on_timeout is OnTimeout.APPROVE and undoable:
            self._end(row, ApprovalStatus.EXPIRED, _UNANSWERED, spare=approval.id)
            approval_log.consume_unanswered(approval, _UNANSWERED, now=self.changes.now)
            self.changes.note(row, "use_approval", reason=_UNANSWERED, details={"approval": str(approval.id)})
            return True
        rejected = approval.on_timeout is OnTimeout.REJECT
        self._end(row, ApprovalStatus.REJECTED if rejected else ApprovalStatus.EXPIRED, _UNANSWERED)
        if approval.on_timeout is OnTimeout.ESCALATE:
            self._ask(row, rule, escalated=True)
            return False
        verdicts.end_unallowed(self.changes, row, f"approval was asked for, and {_UNANSWERED}")
        return False
