"""What may be done next with a step: one pure function of facts, contract, policy and database time.

It knows nothing of databases, workers or tools. Its table is DESIGN.md section 3, "what a crash leaves"; its guarantee
is that it never answers `Start` while an earlier attempt could still take, or could already have taken, an effect that
a second one would double.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from checkpoint.actions import (
    Action,
    Ask,
    ConcludeCommitted,
    ConcludeFailed,
    ConcludeVerified,
    Inspect,
    Nothing,
    Prepare,
    Start,
    StepFacts,
    Verify,
    Wait,
)
from checkpoint.budgets import Policy
from checkpoint.contracts import Contract, RecoveryClass
from checkpoint.outcomes import Absent, Found, Inspection
from checkpoint.states import CaseReason, StepStatus


def next_action(facts: StepFacts, contract: Contract, policy: Policy, now: datetime) -> Action:
    """The next action on a step whose turn it is.

    Args:
        facts: the step and all its attempts, read after its workflow was locked.
        now: database time, read after the lock.
    """
    if facts.lease_until is not None and facts.lease_until > now:
        return Wait(facts.lease_until)
    match facts.status:
        case StepStatus.PLANNED:
            return Prepare()
        case StepStatus.PREPARED:
            return _not_before(facts, now) or Start()
        case StepStatus.STARTED:
            return _after_interruption(facts, contract, policy, now)
        case StepStatus.COMMITTED:
            return (_not_before(facts, now) or Verify()) if contract.can_verify else ConcludeVerified()
        case StepStatus.FAILED:
            return _retry(facts, policy, now)
        case StepStatus.UNCERTAIN | StepStatus.VERIFIED | StepStatus.ABANDONED | StepStatus.SUPERSEDED:
            return Nothing()


def after_inspection(
    answer: Inspection, asked_at: datetime, facts: StepFacts, contract: Contract, policy: Policy
) -> ConcludeCommitted | ConcludeFailed | Ask | Wait:
    """What an inspection's answer means.

    Args:
        asked_at: database time at which the inspection was claimed. Absence counts only when it was asked for after
            no request could land any more (S08, S09).
        facts: the step, with this inspection counted.
    """
    if isinstance(answer, Found):
        return ConcludeCommitted() if answer.receipt.arguments_match else Ask(CaseReason.CONFLICTING_EFFECT)
    quiet_at = _quiet_at(facts, contract)
    if isinstance(answer, Absent):
        return Wait(quiet_at) if asked_at < quiet_at else _after_absence(facts)
    if facts.inspection_count < policy.max_inspections or _may_send_again(facts, contract, policy, asked_at):
        return Wait(asked_at + policy.inspection_wait(facts.inspection_count))
    return Wait(quiet_at) if asked_at < quiet_at else Ask(CaseReason.INSPECTION_INCONCLUSIVE)


def _after_absence(facts: StepFacts) -> ConcludeFailed | Ask:
    """Absence proves nothing where a receipt says the opposite, or where what was sent is not on record."""
    if not facts.attempts or any(attempt.applied for attempt in facts.attempts):
        return Ask(CaseReason.INSPECTION_INCONCLUSIVE)
    return ConcludeFailed("looked up after the settle time: no such effect exists")


def after_invisible(facts: StepFacts, verifications: int, policy: Policy, now: datetime) -> Ask | Wait:
    """What it means that a committed outcome could not be read."""
    committed_at = facts.committed_at or now
    if now >= committed_at + timedelta(seconds=policy.verification_deadline):
        return Ask(CaseReason.EFFECT_NOT_VISIBLE)
    return Wait(now + policy.verification_wait(verifications))


def tries_end_at(facts: StepFacts, policy: Policy) -> datetime | None:
    """When the time for tries is over, however many are left; None before the first of the present budget."""
    of_this_budget = facts.attempts[max(facts.attempts_allowed - policy.max_attempts, 0) :]
    return of_this_budget[0].started_at + timedelta(seconds=policy.retry_deadline) if of_this_budget else None


def _not_before(facts: StepFacts, now: datetime) -> Wait | None:
    return Wait(facts.next_at) if facts.next_at is not None and facts.next_at > now else None


def _retry(facts: StepFacts, policy: Policy, now: datetime) -> Action:
    """Where the wait ends after the budget, there is nothing to wait for."""
    if _budget_spent(facts, policy, max(now, facts.next_at or now)):
        return Ask(CaseReason.RETRIES_EXHAUSTED)
    return _not_before(facts, now) or Start()


def _budget_spent(facts: StepFacts, policy: Policy, at: datetime) -> bool:
    if len(facts.attempts) >= facts.attempts_allowed:
        return True
    ends_at = tries_end_at(facts, policy)
    return ends_at is not None and at >= ends_at


def _after_interruption(facts: StepFacts, contract: Contract, policy: Policy, now: datetime) -> Action:
    if contract.recovery is RecoveryClass.READ_ONLY:
        return ConcludeFailed("a read has no effect")
    if facts.attempts and not facts.unresolved:
        return ConcludeFailed("every attempt was refused")
    if contract.recovery is RecoveryClass.IDEMPOTENT and _key_remembered(facts, contract, now):
        return _inspect_or_send_again(facts, contract, policy, now)
    return _look_or_ask(facts, contract, policy, now)


def _inspect_or_send_again(facts: StepFacts, contract: Contract, policy: Policy, now: datetime) -> Action:
    if contract.can_inspect and facts.inspection_count < policy.max_inspections:
        return _not_before(facts, now) or Inspect()
    if _budget_spent(facts, policy, now):
        return _look_or_ask(facts, contract, policy, now)
    quiet_at = _quiet_at(facts, contract)
    if now < quiet_at and not contract.concurrent_same_key_safe:
        return Wait(quiet_at)
    return _not_before(facts, now) or Start()


def _look_or_ask(facts: StepFacts, contract: Contract, policy: Policy, now: datetime) -> Action:
    """A person is asked only after a last look, taken when no request can land any more."""
    if not contract.can_inspect:
        return _ask_about_unreadable(facts, now)
    if facts.inspection_count >= policy.max_inspections and now < _quiet_at(facts, contract):
        return Wait(_quiet_at(facts, contract))
    if facts.inspection_count > policy.max_inspections:
        return Ask(CaseReason.INSPECTION_INCONCLUSIVE)
    return _not_before(facts, now) or Inspect()


def _ask_about_unreadable(facts: StepFacts, now: datetime) -> Action:
    """Nobody can look it up. It may be on its way until its own deadline, unless it came back to its worker."""
    in_the_air = [attempt.unread_until for attempt in facts.unresolved if not attempt.returned]
    over_at = max(in_the_air, default=now)
    return Wait(over_at) if over_at > now else Ask(CaseReason.OUTCOME_UNKNOWN)


def _may_send_again(facts: StepFacts, contract: Contract, policy: Policy, now: datetime) -> bool:
    return (
        contract.recovery is RecoveryClass.IDEMPOTENT
        and _key_remembered(facts, contract, now)
        and not _budget_spent(facts, policy, now)
    )


def _key_remembered(facts: StepFacts, contract: Contract, now: datetime) -> bool:
    """Whether the provider still honours the key at the latest moment at which one more call can land."""
    if not facts.attempts:
        return False
    if contract.key_lifetime is None:
        return True
    first_sent_at = min(attempt.started_at for attempt in facts.attempts)
    lands_by = now + timedelta(seconds=contract.deadline + contract.settle)
    return lands_by < first_sent_at + timedelta(seconds=contract.key_lifetime)


def _quiet_at(facts: StepFacts, contract: Contract) -> datetime:
    """From when on no request of an unresolved attempt can land any more; the beginning of time if there is none."""
    beginning = datetime.min.replace(tzinfo=UTC)
    return max((a.deadline_at + timedelta(seconds=contract.settle) for a in facts.unresolved), default=beginning)
