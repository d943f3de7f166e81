"""What a simulation knows: its provider's ledger, and what could have been known when somebody was asked."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from checkpoint.contracts import RecoveryClass
from checkpoint.models import Case, Intent, Step
from checkpoint.rows import statements
from checkpoint.states import CaseReason, StepStatus
from tests.proof.simulated_provider import CONTRACTS, SETTLE, Provider, seconds
from tests.proof.simulated_worker import SimulatedWorker

TRIES = 3  # of the policy that ships
_ASKED = "SELECT id FROM checkpoint_case WHERE workflow_id = ANY(%(workflows)s)"


class SimulatedWitness:
    """Judges each question in the moment in which it was asked."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._judged: dict[uuid.UUID, str] = {}

    def effects(self, step: Step) -> int:
        """From the provider's ledger."""
        return len(self._provider.effects.get(step.idempotency_key, ()))

    def lied(self, step: Step) -> bool:
        """Whether the provider gave a receipt and did nothing."""
        return step.idempotency_key in self._provider.receipts_for_nothing

    def could_be_known(self, case: Case) -> str:
        """As judged when it was asked."""
        return self._judged.get(case.pk, "nobody saw it being asked")

    def see_new_cases(self, workflows: Sequence[uuid.UUID], now: datetime) -> None:
        """Judges what was asked since the last look."""
        asked = {case for (case,) in statements.fetch(_ASKED, workflows=list(workflows))}
        new = asked - self._judged.keys()
        for case in (
            Case.objects.filter(pk__in=new).select_related("step__workflow", "step__tool_version") if new else ()
        ):
            self._judged[case.pk] = self._judge(case, now)

    def can_be_settled(self, case: Case, workers: Sequence[SimulatedWorker], now: datetime) -> bool:
        """Whether a person who looks now sees the end of it: nothing is on its way, and no hand can send any more."""
        key = case.step.idempotency_key
        held = any(case.step_id in worker.flights for worker in workers)
        quiet_at = max((attempt.deadline_at + seconds(SETTLE) for attempt in case.step.attempts.all()), default=now)
        return quiet_at <= now and not held and not self._provider.can_still_land(key)

    def _judge(self, case: Case, now: datetime) -> str:
        key = case.step.idempotency_key
        match CaseReason(case.reason):
            case CaseReason.OUTCOME_UNKNOWN:
                return self._judge_unknown(case.step, now)
            case CaseReason.INSPECTION_INCONCLUSIVE:
                helped = not self._provider.unhelpful[key] and not self.lied(case.step)
                return "every lookup gave an answer" if helped else ""
            case CaseReason.EFFECT_NOT_VISIBLE:
                return "" if self._provider.unread[key] else "every reading showed it"
            case CaseReason.RETRIES_EXHAUSTED:
                return "" if self._has_tried(case.step) else "there were tries left"
            case CaseReason.DUPLICATE_EFFECT:
                return "" if self.lied(case.step) else "no provider gave a receipt for nothing"
            case CaseReason.PLAN_INVALID:
                return "" if _is_closed_intent(case.step) else "its effect is to be had"
        return "nothing of the kind happens here"

    def _judge_unknown(self, step: Step, now: datetime) -> str:
        contract = CONTRACTS[step.tool_version.name]
        if contract.can_inspect or contract.recovery is RecoveryClass.READ_ONLY:
            return "it can be looked up, or read again"
        lost = [attempt for attempt in step.attempts.all() if attempt.applied is None]
        if any(attempt.ending == "lost" and attempt.deadline_at > now for attempt in lost):
            return "the call was not over yet"
        could_try = step.attempt_count < TRIES and not self._is_closed(step)
        if contract.recovery is RecoveryClass.IDEMPOTENT and contract.key_lifetime is None and could_try:
            return "the key is honoured, and there were tries left"
        return "" if lost else "every attempt's outcome is on record"

    def _has_tried(self, step: Step) -> bool:
        """As often as the policy says, or once more after a person said that it did not happen."""
        refused_for_ever = step.idempotency_key in self._provider.permanently_refused
        return step.attempts.count() >= TRIES or refused_for_ever or step.cases.count() > 1

    def _is_closed(self, step: Step) -> bool:
        """Nothing more may be sent: the provider never will, or the workflow is to end."""
        return step.idempotency_key in self._provider.permanently_refused or step.workflow.winding_down


def _is_closed_intent(step: Step) -> bool:
    """Whether the effect that the step names was given up after it was sent, or undone."""
    owner = Intent.objects.get(key=step.idempotency_key).owner
    given_up = owner.status == StepStatus.ABANDONED and owner.attempt_count > 0
    return given_up or Step.objects.filter(compensates=owner).exists()
