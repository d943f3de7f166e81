"""What a person's answer to a case does to the step, in the transaction that records the decision.

Each answer takes the next fence (S45): whoever still acts on the step, however late, is refused as a writer. Afterwards
the engine goes on by itself: a confirmed effect is verified like any other, a retried one is sent with the same key.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from checkpoint.errors import DecisionNotAllowed, SubmissionInvalid
from checkpoint.gates import step_rulings
from checkpoint.models import Case, Ending, Evidence, EvidenceKind, PolicyVersion, ToolVersion
from checkpoint.outcomes import Facts
from checkpoint.planning import argument_schemas
from checkpoint.rows import attempt_log, evidence_log, workflow_rows
from checkpoint.rows.attempt_log import AttemptRow
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CaseReason, Decision, Standing, StepStatus
from checkpoint.transactions import require_transaction
from checkpoint.transitions import Changes, overrule
from checkpoint.turns import human_tasks, pinned, verdicts

FOUND_OTHER = ("found_other", "conflict")


@dataclass(frozen=True)
class Answer:
    """What a person said.

    Attributes:
        operation_id: the provider's id of the effect, if the person found it.
        data: what the person put into a task's form.
    """

    kind: Decision
    reason: str
    operation_id: str = ""
    data: Any = None


def apply(changes: Changes, case: Case, row: StepRow, answer: Answer) -> None:
    """Carries out a legal answer. The caller holds the locks, checks the guards and finishes the changes."""
    require_transaction()
    overrule(changes, row, why=f"{changes.actor.name} decided: {answer.kind}")
    attempts = attempt_log.of_steps([row.id]).get(row.id, [])
    handlers: dict[Decision, Callable[[_Deciding], None]] = {
        Decision.CONFIRM: _Deciding.confirm,
        Decision.RETRY: _Deciding.retry,
        Decision.ABANDON: _Deciding.abandon,
        Decision.CONTINUE: _Deciding.go_on,
        Decision.ACKNOWLEDGE: _Deciding.acknowledge,
        Decision.ANSWER: _Deciding.give_answer,
    }
    handlers[answer.kind](_Deciding(changes, case, row, answer, attempts))


@dataclass(frozen=True)
class _Deciding:
    changes: Changes
    case: Case
    row: StepRow
    answer: Answer
    attempts: list[AttemptRow]

    def confirm(self) -> None:
        """It happened. Where verification had already failed, the person's word is all there is."""
        row, target = self.row, self.case.rule.decisions[Decision.CONFIRM]
        self._resolve_last_attempt()
        attested = self._attest("confirmed", self._known_facts())
        row.operation_id = self.answer.operation_id or row.operation_id
        row.standing, row.next_at = Standing.ATTESTED, None
        if target is StepStatus.VERIFIED:
            verdicts.conclude_verified(self.changes, row)
            return
        row.receipt_id, row.committed_at, row.verification_count = attested, self.changes.now, 0
        self.changes.move(row, StepStatus.COMMITTED, verb="confirm", reason=self.answer.reason)

    def retry(self) -> None:
        """It did not happen, or what stood in the way is gone: once more, with the same key."""
        row = self.row
        row.next_at, row.inspection_count, row.verification_count = None, 0, 0
        if row.attempt_count:
            self._attest("denied", {})
            row.attempts_allowed = row.attempt_count + self._granted()
        if row.status is StepStatus.UNCERTAIN:
            settled_at = self._settled_at()
            verdicts.conclude_failed(self.changes, row, self.attempts, f"{self.changes.actor.name}: it did not happen")
            row.next_at = settled_at
        else:
            self.changes.note(row, "retry", reason=self.answer.reason)

    def abandon(self) -> None:
        """The step and what follows end; effects that did happen stay listed."""
        self.changes.workflows[self.row.workflow_id].winding_down = True
        if self.case.rule.decisions[Decision.ABANDON] is None:  # of the whole plan: what has not ended, ends with it
            self.changes.note(self.row, "abandon", reason=self.answer.reason)
        else:
            self.changes.move(self.row, StepStatus.ABANDONED, verb="abandon", reason=self.answer.reason)

    def go_on(self) -> None:
        """Under what is there now: policy, prompt, or the version of the tool if it takes the same arguments.

        Or as long again: where an agent is waited for.
        """
        adopt = {
            CaseReason.POLICY_CHANGED: self._adopt_policy,
            CaseReason.PROMPT_CHANGED: self._adopt_prompt,
            CaseReason.TOOL_CHANGED: self._adopt_tool,
            CaseReason.AGENT_SILENT: self._wait_on,
        }
        details = adopt[CaseReason(self.case.reason)]()
        self.changes.note(self.row, "continue", reason=self.answer.reason, details=details)
        self.row.next_at = None

    def _adopt_policy(self) -> dict[str, Any]:
        in_force = PolicyVersion.objects.latest("number")
        self.changes.workflows[self.row.workflow_id].policy_version_id = in_force.pk
        return {"policy": in_force.number}

    def _adopt_prompt(self) -> dict[str, Any]:
        workflow = self.changes.workflows[self.row.workflow_id]
        workflow_rows.adopt_prompt(workflow)
        return {"prompt_version": workflow.prompt_version}

    def _wait_on(self) -> dict[str, Any]:
        """The workflow gets its whole time again when its status follows from its steps."""
        return {"for": "its agent"}

    def _adopt_tool(self) -> dict[str, Any]:
        row = self.row
        newest = ToolVersion.objects.filter(name=pinned.tool_version(row.tool_version_id).name).latest("published_at")
        if pinned.by_agent(newest.pk) != row.by_agent:
            raise DecisionNotAllowed(f"{newest} is carried out by somebody else: abandon the step and submit it anew")
        self._check_same_arguments(newest)
        row.tool_version_id = newest.pk
        row.variant = argument_schemas.match_variant(newest.variants, row.arguments_value)
        return {"tool_version": str(newest)}

    def acknowledge(self) -> None:
        """The person knows and deals with it outside."""
        self.changes.note(self.row, "acknowledge", reason=self.answer.reason)

    def give_answer(self) -> None:
        """What a person answers to a task is its effect, its receipt and its outcome. Nothing is sent."""
        row = self.row
        answer = human_tasks.checked_answer(row.arguments_value, self.answer.data)
        row.receipt_id = self._attest("answered", {"answer": answer, "person": self.changes.actor.name})
        row.standing, row.next_at, row.committed_at = Standing.ATTESTED, None, self.changes.now
        self.changes.move(row, StepStatus.STARTED, verb="start")
        self.changes.move(row, StepStatus.COMMITTED, verb="answer", reason=self.answer.reason)
        verdicts.conclude_verified(self.changes, row)

    def _check_same_arguments(self, newest: ToolVersion) -> None:
        try:
            same = argument_schemas.prepare_arguments(newest.schema, self.row.arguments_value) == self.row.arguments
        except SubmissionInvalid as error:
            raise DecisionNotAllowed(f"{newest} does not take these arguments ({error}): abandon the step") from error
        if not same:
            raise DecisionNotAllowed(f"{newest} reads these arguments differently: abandon the step and submit it anew")

    def _settled_at(self) -> datetime | None:
        """Until when a call that nobody heard of can still land; "it is not there" is no proof before (S08, S09)."""
        settle = timedelta(seconds=pinned.contract(self.row).settle)
        open_calls = [attempt.deadline_at + settle for attempt in self.attempts if attempt.applied is None]
        return max(open_calls, default=None)

    def _granted(self) -> int:
        """A refusal that a person looked into gets the policy's whole budget again; an uncertainty, one more try."""
        if self.case.reason not in (CaseReason.RETRIES_EXHAUSTED, CaseReason.COMPENSATION_FAILED):
            return 1
        return step_rulings.budgets(self.changes.workflows[self.row.workflow_id], self.row).max_attempts

    def _resolve_last_attempt(self) -> None:
        for attempt in self.attempts[-1:]:
            attempt.end(
                Ending.LOST, applied=True, detail=f"{self.changes.actor.name}: it happened", now=self.changes.now
            )
            self.changes.end_attempt(attempt)

    def _known_facts(self) -> Facts:
        """What a lookup found, where the question was about that."""
        if self.case.reason != CaseReason.CONFLICTING_EFFECT:
            return {}
        found = Evidence.objects.filter(step=self.row.id, finding__in=FOUND_OTHER).latest("id")
        return dict(found.facts_value)

    def _attest(self, finding: str, facts: Facts) -> uuid.UUID:
        evidence = evidence_log.observe(
            self.row.id, EvidenceKind.ATTESTATION, finding, facts | {"reason": self.answer.reason},
            source=f"person {self.changes.actor.name}", standing=Standing.ATTESTED, fence=self.row.fence,
            attempt_number=self.row.attempt_count or None, operation_id=self.answer.operation_id, now=self.changes.now,
        )  # fmt: skip
        self.changes.observe(evidence)
        return evidence.id
