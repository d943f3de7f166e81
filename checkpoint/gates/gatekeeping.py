"""Asks the policy in force before a step starts, in the transaction that starts it (S12, S13, S17)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from checkpoint.contracts import Reversibility
from checkpoint.gates import approval_requests, drift, rulings, step_rulings
from checkpoint.gates.drift import Drift, Present
from checkpoint.gates.gating import Gate, Go, Hold, Pins, Request, TimedOut, pass_gate
from checkpoint.gates.rulings import ApprovalRule, DriftAnswer, OnTimeout, Ruling, Scope
from checkpoint.rows import approval_log, statements, step_rows
from checkpoint.rows.approval_log import ApprovalRow, NewApproval
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import OPEN_REQUESTS, ApprovalStatus, StepStatus
from checkpoint.transitions import Changes
from checkpoint.turns import pinned, verdicts

_IN_FORCE = "SELECT id FROM checkpoint_policyversion ORDER BY number DESC LIMIT 1"
_NEVER_SENT = (StepStatus.PLANNED, StepStatus.PREPARED)
_UNANSWERED = "nobody answered in time"

TakePlace = Callable[[StepRow], bool]


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
    _rulings: dict[uuid.UUID, Ruling] = field(default_factory=dict)
    _approvals: dict[uuid.UUID, ApprovalRow] | None = None

    def admits(self, row: StepRow, take_place: TakePlace) -> bool:
        """Whether the prepared step may start now. If not, what it waits for is written down.

        Args:
            take_place: asked last, so that people are asked while limits are reached, and no approval is used up then.

        Raises:
            RecordDamaged: the policy in force cannot be read.
        """
        workflow = self.changes.workflows[row.workflow_id]
        if not self._has_rules and not workflow.open_requests:
            return take_place(row)
        if row.id in self.asked or (workflow.winding_down and row.status is not StepStatus.STARTED):
            return False
        ruling, approval = self._ruling(row), self._newest(row)
        facts = approval.facts if approval else None
        gate = pass_gate(ruling.approval, facts, self._pins(row, ruling, approval), self.changes.now)
        admitted = self._follow(gate, row, ruling.approval, approval, take_place)
        if admitted:
            self._note_drift(row)
        return admitted

    def _follow(
        self, gate: Gate, row: StepRow, rule: ApprovalRule | None, approval: ApprovalRow | None, take_place: TakePlace
    ) -> bool:
        if isinstance(gate, Go):
            return take_place(row) and self._go(gate, row, approval)
        if isinstance(gate, TimedOut) and approval is not None and self._silence_allows(row, approval):
            return take_place(row) and self._go_unanswered(row, approval)
        self._wait(gate, row, rule, approval)
        return False

    def to_review(self, row: StepRow) -> Drift | None:
        """What changed since the step was planned that the policy wants a person to look at. Raises as `admits`."""
        if not self._has_rules:
            return None
        return next((found for found in self._drifts(row) if found.answer is DriftAnswer.REVIEW), None)

    @cached_property
    def in_force(self) -> uuid.UUID:
        """The newest policy version."""
        ((policy_version_id,),) = statements.fetch(_IN_FORCE)
        return uuid.UUID(str(policy_version_id))

    @cached_property
    def _has_rules(self) -> bool:
        return pinned.has_rules(self.in_force)

    @cached_property
    def _present(self) -> Present:
        return Present(self.in_force)

    def _ruling(self, row: StepRow) -> Ruling:
        if row.id not in self._rulings:
            workflow = self.changes.workflows[row.workflow_id]
            self._rulings[row.id] = step_rulings.ruling(self.in_force, workflow, row)
        return self._rulings[row.id]

    def _drifts(self, row: StepRow) -> Iterator[Drift]:
        return self._present.drifts(self.changes.workflows[row.workflow_id], row, self._ruling(row).drift)

    def _note_drift(self, row: StepRow) -> None:
        """What changed and does not matter is recorded all the same."""
        for found in self._drifts(row) if self._has_rules else ():
            if found.answer is DriftAnswer.CONTINUE:
                self.changes.note(row, "continue", before=found.reason.value, reason=found.note)

    def _newest(self, row: StepRow) -> ApprovalRow | None:
        if self._approvals is None:
            self._approvals = approval_log.newest_of_steps(self.step_ids)
        return self._approvals.get(row.id)

    def _pins(self, row: StepRow, ruling: Ruling, approval: ApprovalRow | None) -> Pins:
        """What would be sent now; where the policy says that a change does not matter, as under the earlier."""
        scope = ruling.approval.scope if ruling.approval else Scope.STEP
        pins = Pins(row.arguments_hash, self.in_force, row.tool_version_id, scope)
        if approval is None:
            return pins
        given, prompt = approval.facts.pins, self.changes.workflows[row.workflow_id].present_prompt
        pins = replace(pins, prompt_version=prompt, newest_tool_id=self._present.tool(row))
        pins = drift.disregard(pins, given, ruling.drift)
        # Whoever allowed the plan allowed the arguments that its template makes of earlier results.
        if scope is Scope.PLAN and given.content_hash == approval_requests.template_hash(row):
            pins = replace(pins, content_hash=given.content_hash)
        return pins

    def _go(self, gate: Go, row: StepRow, approval: ApprovalRow | None) -> bool:
        self._end(row, gate.ends, "the policy asks nothing any more")
        if gate.consume and approval is not None:
            self._consume(row, approval)
        return True

    def _wait(self, gate: Gate, row: StepRow, rule: ApprovalRule | None, approval: ApprovalRow | None) -> None:
        match gate:
            case Request(ends):
                self._end(row, ends, "what it was given for has changed, or its time is over")
                self._ask(row, rule)
            case Hold(until):
                self.changes.touch(row).next_at = until
            case TimedOut() if approval is not None:
                self._time_out(row, rule, approval)

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
        self.changes.request_approval(row, self._new_request(rows, rule))
        self.asked.update(one.id for one in rows)

    def _new_request(self, rows: list[StepRow], rule: ApprovalRule) -> list[NewApproval]:
        prompt = self.changes.workflows[rows[0].workflow_id].present_prompt
        return approval_requests.request(rows, rule, self._present, prompt, now=self.changes.now)

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

    def _silence_allows(self, row: StepRow, approval: ApprovalRow) -> bool:
        """Silence allows nothing that cannot be undone, whatever a policy says."""
        undoable = pinned.contract(row).reversibility is not Reversibility.IRREVERSIBLE
        return approval.on_timeout is OnTimeout.APPROVE and undoable

    def _go_unanswered(self, row: StepRow, approval: ApprovalRow) -> bool:
        self._end(row, ApprovalStatus.EXPIRED, _UNANSWERED, spare=approval.id)
        approval_log.consume_unanswered(approval, _UNANSWERED, now=self.changes.now)
        self.changes.note(row, "use_approval", reason=_UNANSWERED, details={"approval": str(approval.id)})
        return True

    def _time_out(self, row: StepRow, rule: ApprovalRule | None, approval: ApprovalRow) -> None:
        """Nobody answered in time, and that does not allow it."""
        rejected = approval.on_timeout is OnTimeout.REJECT
        self._end(row, ApprovalStatus.REJECTED if rejected else ApprovalStatus.EXPIRED, _UNANSWERED)
        if approval.on_timeout is OnTimeout.ESCALATE:
            self._ask(row, rule, escalated=True)
        else:
            verdicts.end_unallowed(self.changes, row, f"approval was asked for, and {_UNANSWERED}")
