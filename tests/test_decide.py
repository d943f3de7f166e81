"""The pure decision over its whole domain: it never raises or spins, and never sends what could double an effect."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint.actions import (
    Action,
    Ask,
    AttemptFacts,
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
from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.decide import after_inspection, after_invisible, next_action
from checkpoint.gates.jitter import share_of
from checkpoint.outcomes import Absent, Found, Inconclusive, Inspection, Pending, Receipt
from checkpoint.states import STEP_TERMINAL, CaseReason, StepStatus

S = StepStatus
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
POLICY = Policy()
AT_REST = STEP_TERMINAL | {S.UNCERTAIN}


def at(seconds: float) -> datetime:
    """A moment, counted from NOW."""
    return NOW + timedelta(seconds=seconds)


# Whole seconds in a narrow range, so that the very edge of every comparison is tried often.
moments = st.integers(-90, 90).map(at)
waits = st.sampled_from([0.01, 1.0, 30.0])
policies = st.builds(
    Policy,
    st.integers(1, 4),
    waits,
    waits,
    st.sampled_from([30.0, 86_400.0]),
    st.integers(0, 4),
    waits,
    waits,
    waits,
    waits,
    st.sampled_from([0.0, 60.0]),
)


@st.composite
def contracts(draw: st.DrawFn, *classes: RecoveryClass) -> Contract:
    """Every contract that can be declared, or those of some recovery classes."""
    recovery = draw(st.sampled_from(classes or tuple(RecoveryClass)))
    return Contract(
        recovery,
        Reversibility.NONE_NEEDED,
        deadline=draw(st.sampled_from([0.5, 5.0, 30.0])),
        settle=draw(st.sampled_from([0.0, 5.0, 20.0])),
        key_lifetime=draw(st.sampled_from([None, 0.0, 30.0, 60.0, 86400.0])),
        concurrent_same_key_safe=draw(st.booleans()),
        can_inspect=recovery is RecoveryClass.QUERYABLE
        or (recovery is not RecoveryClass.OPAQUE and draw(st.booleans())),
        can_verify=draw(st.booleans()),
    )


@st.composite
def attempts(draw: st.DrawFn) -> AttemptFacts:
    """Any attempt, also one that ended strangely."""
    started = draw(st.integers(-90, 0))
    deadline = draw(st.sampled_from([1, 5, 30]))
    returned, applied = draw(st.booleans()), draw(st.sampled_from([None, True, False]))
    word_until = None if returned else draw(st.none() | moments)
    return AttemptFacts(at(started), at(started + deadline), returned, applied, word_until)


all_facts = st.builds(
    StepFacts,
    status=st.sampled_from(S),
    lease_until=st.none() | moments,
    attempts=st.lists(attempts(), max_size=3),
    attempts_allowed=st.integers(0, 4),
    inspection_count=st.integers(0, 5),
    next_at=st.none() | moments,
    committed_at=st.none() | moments,
)
free_facts = all_facts.map(lambda facts: replace(facts, lease_until=None))
started_facts = free_facts.map(lambda facts: replace(facts, status=S.STARTED))
receipts = st.builds(Receipt, arguments_match=st.booleans())
answers = st.one_of(
    st.builds(Found, receipts), st.just(Absent()), st.just(Pending()), st.just(Inconclusive("the lookup failed"))
)


def may_have_happened(facts: StepFacts) -> list[AttemptFacts]:
    """The attempts that are not proved to have had no effect."""
    return [attempt for attempt in facts.attempts if attempt.applied is not False]


def quiet(facts: StepFacts, contract: Contract, moment: datetime) -> bool:
    """Whether no request can land any more at that moment."""
    settle = timedelta(seconds=contract.settle)
    return all(attempt.deadline_at + settle <= moment for attempt in may_have_happened(facts))


# --- total


@given(all_facts, contracts(), policies)
def test_there_is_an_action_for_everything(facts: StepFacts, contract: Contract, policy: Policy) -> None:
    assert isinstance(next_action(facts, contract, policy, NOW), Action)


@given(answers, moments, all_facts, contracts(), policies)
def test_there_is_a_verdict_on_every_answer(
    answer: Inspection, asked_at: datetime, facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    verdict = after_inspection(answer, asked_at, facts, contract, policy)
    assert isinstance(verdict, ConcludeCommitted | ConcludeFailed | Ask | Wait)


@given(all_facts, st.integers(0, 100), policies)
def test_an_outcome_that_cannot_be_read_is_read_again_or_asked_about(
    facts: StepFacts, verifications: int, policy: Policy
) -> None:
    verdict = after_invisible(facts, verifications, policy, NOW)
    over = (facts.committed_at or NOW) + timedelta(seconds=policy.verification_deadline) <= NOW
    assert (verdict == Ask(CaseReason.EFFECT_NOT_VISIBLE)) == over
    assert over or isinstance(verdict, Wait)


# --- never harm


@given(all_facts, st.integers(1, 90).map(at), contracts())
def test_nothing_is_done_while_somebody_holds_the_step(
    facts: StepFacts, lease_until: datetime, contract: Contract
) -> None:
    assert next_action(replace(facts, lease_until=lease_until), contract, POLICY, NOW) == Wait(lease_until)


@given(started_facts, contracts(), policies)
def test_what_may_have_been_sent_is_sent_again_only_under_a_key_that_the_provider_honours(
    facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    """S08, S09. Never for opaque and queryable tools; nor while the first call can land, unless that is harmless."""
    if not isinstance(next_action(facts, contract, policy, NOW), Start):
        return
    assert contract.recovery is RecoveryClass.IDEMPOTENT
    assert len(facts.attempts) < facts.attempts_allowed
    assert contract.concurrent_same_key_safe or quiet(facts, contract, NOW)
    if contract.key_lifetime is not None:
        lands_by = NOW + timedelta(seconds=contract.deadline + contract.settle)
        assert lands_by < min(a.started_at for a in facts.attempts) + timedelta(seconds=contract.key_lifetime)


@given(started_facts, contracts(), policies)
def test_an_interrupted_step_counts_as_failed_only_when_every_attempt_was_refused(
    facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    if isinstance(next_action(facts, contract, policy, NOW), ConcludeFailed):
        all_refused = bool(facts.attempts) and not may_have_happened(facts)
        assert all_refused or contract.recovery is RecoveryClass.READ_ONLY


@given(answers, moments, started_facts, contracts(), policies)
def test_absence_counts_only_when_asked_for_after_no_request_could_land(
    answer: Inspection, asked_at: datetime, facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    """S08: an eventually consistent lookup. S09: a local timeout while the request is still on its way."""
    if isinstance(after_inspection(answer, asked_at, facts, contract, policy), ConcludeFailed):
        assert isinstance(answer, Absent)
        assert quiet(facts, contract, asked_at)


@given(answers, moments, started_facts, attempts(), contracts(), policies)
def test_no_lookup_outweighs_a_receipt(
    answer: Inspection,
    asked_at: datetime,
    facts: StepFacts,
    attempt: AttemptFacts,
    contract: Contract,
    policy: Policy,
) -> None:
    """An attempt that is known to have taken effect cannot be concluded to have failed."""
    facts = replace(facts, attempts=[replace(attempt, applied=True), *facts.attempts])
    assert not isinstance(after_inspection(answer, asked_at, facts, contract, policy), ConcludeFailed)


@given(answers, moments, started_facts, contracts(), policies)
def test_an_effect_counts_as_found_only_with_our_own_arguments(
    answer: Inspection, asked_at: datetime, facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    verdict = after_inspection(answer, asked_at, facts, contract, policy)
    ours = isinstance(answer, Found) and answer.receipt.arguments_match
    others = isinstance(answer, Found) and not answer.receipt.arguments_match
    assert (verdict == ConcludeCommitted()) == ours
    assert (verdict == Ask(CaseReason.CONFLICTING_EFFECT)) == others


@given(started_facts, contracts(), policies)
def test_a_person_is_not_asked_about_a_call_nobody_can_look_up_before_it_is_over(
    facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    if next_action(facts, contract, policy, NOW) == Ask(CaseReason.OUTCOME_UNKNOWN):
        in_the_air = [attempt for attempt in may_have_happened(facts) if not attempt.returned]
        assert all(attempt.deadline_at <= NOW for attempt in in_the_air)
        if not contract.can_inspect:
            assert all(attempt.word_until is None or attempt.word_until <= NOW for attempt in in_the_air)


@given(started_facts, attempts(), contracts(RecoveryClass.OPAQUE), policies)
def test_an_opaque_call_of_unknown_outcome_ends_in_a_question_and_nothing_else(
    facts: StepFacts, attempt: AttemptFacts, contract: Contract, policy: Policy
) -> None:
    facts = replace(facts, attempts=[*facts.attempts, replace(attempt, applied=None)])
    action = next_action(facts, contract, policy, NOW)
    assert isinstance(action, Wait) or action == Ask(CaseReason.OUTCOME_UNKNOWN)


# --- always progress


@given(free_facts, contracts(), policies)
def test_a_step_rests_exactly_when_it_is_done_or_a_person_is_asked(
    facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    assert (next_action(facts, contract, policy, NOW) == Nothing()) == (facts.status in AT_REST)


@given(all_facts, contracts(), policies)
def test_a_wait_lies_in_the_future_so_that_nothing_spins(facts: StepFacts, contract: Contract, policy: Policy) -> None:
    action = next_action(facts, contract, policy, NOW)
    assert not isinstance(action, Wait) or action.until > NOW


@given(answers, moments, started_facts, contracts(), policies)
def test_the_next_lookup_comes_later_than_the_last(
    answer: Inspection, asked_at: datetime, facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    verdict = after_inspection(answer, asked_at, facts, contract, policy)
    assert not isinstance(verdict, Wait) or verdict.until > asked_at


@given(all_facts, st.integers(0, 100), policies)
def test_the_next_reading_comes_later(facts: StepFacts, verifications: int, policy: Policy) -> None:
    verdict = after_invisible(facts, verifications, policy, NOW)
    assert not isinstance(verdict, Wait) or verdict.until > NOW


@given(all_facts, contracts(), policies)
def test_waiting_comes_to_an_end(facts: StepFacts, contract: Contract, policy: Policy) -> None:
    """Lease, quiet time, backoff: deciding again after each of them leads to something else than another wait."""
    now, action = NOW, next_action(facts, contract, policy, NOW)
    for _ in range(4):
        if isinstance(action, Wait):
            now = action.until
            action = next_action(facts, contract, policy, now)
    assert not isinstance(action, Wait)


@given(free_facts, contracts(), policies)
def test_a_refused_step_is_tried_again_until_its_budget_is_spent_and_then_asked_about(
    facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    patient = replace(policy, retry_deadline=86_400.0)
    action = next_action(replace(facts, status=S.FAILED, next_at=None), contract, patient, NOW)
    spent = len(facts.attempts) >= facts.attempts_allowed
    assert action == (Ask(CaseReason.RETRIES_EXHAUSTED) if spent else Start())


@given(started_facts, contracts(), policies)
def test_lookups_end_even_where_none_tells_anything(facts: StepFacts, contract: Contract, policy: Policy) -> None:
    facts = replace(facts, inspection_count=policy.max_inspections + 1)
    assert next_action(facts, contract, policy, NOW) != Inspect()


@given(
    st.sampled_from([Pending(), Inconclusive("")]),
    moments,
    started_facts,
    contracts(RecoveryClass.QUERYABLE, RecoveryClass.OPAQUE),
    policies,
)
def test_a_lookup_that_tells_nothing_becomes_a_question_once_there_were_enough_and_nothing_can_land_any_more(
    answer: Inspection, asked_at: datetime, facts: StepFacts, contract: Contract, policy: Policy
) -> None:
    facts = replace(facts, inspection_count=policy.max_inspections)
    verdict = after_inspection(answer, asked_at, facts, contract, policy)
    assert (verdict == Ask(CaseReason.INSPECTION_INCONCLUSIVE)) == quiet(facts, contract, asked_at)


@given(st.integers(0, 200), st.integers(0, 200))
def test_backoff_grows_up_to_its_cap(times: int, more: int) -> None:
    for wait in (partial(POLICY.retry_wait, share=1.0), POLICY.inspection_wait, POLICY.verification_wait):
        assert timedelta(0) < wait(times) <= wait(times + more) <= timedelta(seconds=POLICY.retry_cap)


@given(st.integers(1, 200), st.floats(0, 1, exclude_min=True))
def test_full_jitter_waits_a_share_of_the_backoff_and_never_not_at_all(attempts: int, share: float) -> None:
    whole, wait = POLICY.retry_wait(attempts, 1.0), POLICY.retry_wait(attempts, share)
    assert wait == max(whole * share, timedelta(milliseconds=1))


@given(policies, all_facts, contracts(), st.integers(1, 4), moments)
def test_nothing_is_tried_again_after_the_budget_of_time(
    policy: Policy, facts: StepFacts, contract: Contract, granted: int, now: datetime
) -> None:
    """Counted from the first attempt since a person granted attempts anew; before that, earlier ones do not count."""
    facts = replace(facts, status=StepStatus.FAILED, lease_until=None, attempts_allowed=len(facts.attempts) + granted)
    own = facts.attempts[max(facts.attempts_allowed - policy.max_attempts, 0) :]
    starts_at = max(now, facts.next_at or now)
    over = bool(own) and starts_at >= own[0].started_at + timedelta(seconds=policy.retry_deadline)
    action = next_action(facts, contract, policy, now)
    assert (action == Ask(CaseReason.RETRIES_EXHAUSTED)) == over


def test_shares_are_spread_evenly_and_the_same_for_the_same_attempt() -> None:
    steps = [uuid.UUID(int=number) for number in range(4000)]
    shares = [share_of(step, attempt) for step in steps for attempt in (1, 2)]
    assert shares == [share_of(step, attempt) for step in steps for attempt in (1, 2)]
    assert len(set(shares)) > 7990
    tenths = Counter(math.ceil(share * 10) for share in shares)
    assert set(tenths) == set(range(1, 11))
    assert all(700 < count < 900 for count in tenths.values())


# --- the table of DESIGN.md section 3, row by row

READ = Contract(RecoveryClass.READ_ONLY, Reversibility.NONE_NEEDED)
KEYED = Contract(RecoveryClass.IDEMPOTENT, Reversibility.COMPENSABLE)
KEYED_LOOKED_UP = replace(KEYED, can_inspect=True)
KEYED_TWICE_AT_ONCE = replace(KEYED, concurrent_same_key_safe=True)
QUERYABLE = Contract(RecoveryClass.QUERYABLE, Reversibility.COMPENSABLE, can_inspect=True, can_verify=True)
OPAQUE = Contract(RecoveryClass.OPAQUE, Reversibility.IRREVERSIBLE)
EVERY_CLASS = (READ, KEYED, QUERYABLE, OPAQUE)


def call(started: float, *, returned: bool = False, applied: bool | None = None) -> AttemptFacts:
    """An attempt that began so many seconds from NOW, with the usual deadline of 30 s."""
    return AttemptFacts(at(started), at(started + 30), returned, applied)


def step(status: StepStatus, *calls: AttemptFacts, **more: object) -> StepFacts:
    """A step with these attempts and a budget of three."""
    return replace(StepFacts(status, attempts=calls, attempts_allowed=3), **more)  # type: ignore[arg-type]


CUT_OFF = step(S.STARTED, call(-10))  # its worker died; the call may be on its way for 20 s more, and 5 s settle
OVER = step(S.STARTED, call(-60))
BACK = step(S.STARTED, call(-10, returned=True))
REFUSED = step(S.FAILED, call(-60, returned=True, applied=False))


@pytest.mark.parametrize("contract", EVERY_CLASS, ids=lambda contract: contract.recovery.value)
@pytest.mark.parametrize(
    ("facts", "action"),
    [
        (step(S.PLANNED), Prepare()),
        (step(S.PREPARED), Start()),
        (step(S.STARTED, call(-10), lease_until=at(5)), Wait(at(5))),
        (REFUSED, Start()),
        (replace(REFUSED, next_at=at(2)), Wait(at(2))),
        (replace(REFUSED, attempts_allowed=1), Ask(CaseReason.RETRIES_EXHAUSTED)),
        (step(S.UNCERTAIN, call(-60)), Nothing()),
        (step(S.VERIFIED, call(-60, returned=True, applied=True)), Nothing()),
        (step(S.ABANDONED), Nothing()),
    ],
)
def test_found_after_a_crash_whatever_the_tool_promises(facts: StepFacts, action: Action, contract: Contract) -> None:
    assert next_action(facts, contract, POLICY, NOW) == action


@pytest.mark.parametrize(
    ("contract", "facts", "action"),
    [
        (READ, CUT_OFF, ConcludeFailed("a read has no effect")),
        (KEYED, CUT_OFF, Wait(at(25))),
        (KEYED_TWICE_AT_ONCE, CUT_OFF, Start()),
        (KEYED, OVER, Start()),
        (KEYED_LOOKED_UP, CUT_OFF, Inspect()),
        (KEYED_LOOKED_UP, replace(OVER, inspection_count=5), Start()),
        (replace(KEYED, key_lifetime=95.0), OVER, Ask(CaseReason.OUTCOME_UNKNOWN)),
        (replace(KEYED, key_lifetime=96.0), OVER, Start()),
        (replace(KEYED_LOOKED_UP, key_lifetime=95.0), OVER, Inspect()),
        (replace(KEYED_LOOKED_UP, key_lifetime=95.0), replace(OVER, inspection_count=5), Inspect()),
        (replace(KEYED_LOOKED_UP, key_lifetime=95.0), replace(OVER, inspection_count=6),
         Ask(CaseReason.INSPECTION_INCONCLUSIVE)),
        (KEYED, replace(OVER, attempts_allowed=1), Ask(CaseReason.OUTCOME_UNKNOWN)),
        (KEYED, replace(CUT_OFF, attempts_allowed=1), Wait(at(20))),
        (QUERYABLE, CUT_OFF, Inspect()),
        (QUERYABLE, replace(CUT_OFF, next_at=at(1)), Wait(at(1))),
        (QUERYABLE, replace(CUT_OFF, inspection_count=4), Inspect()),
        (QUERYABLE, replace(CUT_OFF, inspection_count=5), Wait(at(25))),
        (QUERYABLE, replace(OVER, inspection_count=5), Inspect()),
        (QUERYABLE, replace(OVER, inspection_count=6), Ask(CaseReason.INSPECTION_INCONCLUSIVE)),
        (OPAQUE, CUT_OFF, Wait(at(20))),
        (OPAQUE, OVER, Ask(CaseReason.OUTCOME_UNKNOWN)),
        (OPAQUE, step(S.STARTED, replace(call(-60), word_until=at(3))), Wait(at(3))),
        (OPAQUE, step(S.STARTED, replace(call(-60), word_until=at(0))), Ask(CaseReason.OUTCOME_UNKNOWN)),
        (QUERYABLE, step(S.STARTED, replace(call(-60), word_until=at(3))), Inspect()),
        (OPAQUE, BACK, Ask(CaseReason.OUTCOME_UNKNOWN)),
        (OPAQUE, step(S.STARTED, call(-60), call(-10, returned=True, applied=False)), Ask(CaseReason.OUTCOME_UNKNOWN)),
        (OPAQUE, step(S.STARTED, call(-10, returned=True, applied=False)), ConcludeFailed("every attempt was refused")),
    ],
)  # fmt: skip
def test_found_started_and_nobody_holds_it(contract: Contract, facts: StepFacts, action: Action) -> None:
    assert next_action(facts, contract, POLICY, NOW) == action


@pytest.mark.parametrize(
    ("contract", "action"),
    [(OPAQUE, ConcludeVerified()), (QUERYABLE, Verify()), (replace(OPAQUE, can_verify=True), Verify())],
)
def test_found_committed(contract: Contract, action: Action) -> None:
    facts = step(S.COMMITTED, call(-60, returned=True, applied=True), committed_at=at(-5))
    assert next_action(facts, contract, POLICY, NOW) == action


def test_found_started_without_any_attempt_on_record_is_a_question_and_not_a_failure() -> None:
    """S03: the record of what was sent is missing, so nothing is known and nothing is sent."""
    for contract in (KEYED, OPAQUE):
        assert next_action(step(S.STARTED), contract, POLICY, NOW) == Ask(CaseReason.OUTCOME_UNKNOWN)


@pytest.mark.parametrize(
    ("asked_at", "verdict"),
    [
        (at(0), Wait(at(25))),
        (at(24), Wait(at(25))),
        (at(25), ConcludeFailed("looked up after the settle time: no such effect exists")),
    ],
)
def test_s08_s09_nothing_found_is_believed_only_after_deadline_and_settle_time(
    asked_at: datetime, verdict: object
) -> None:
    assert after_inspection(Absent(), asked_at, CUT_OFF, QUERYABLE, POLICY) == verdict


def test_s09_a_call_that_came_back_without_an_answer_can_still_land() -> None:
    assert after_inspection(Absent(), NOW, BACK, QUERYABLE, POLICY) == Wait(at(25))


def test_a_receipt_that_came_late_for_an_older_attempt_keeps_the_step_from_failing() -> None:
    """Attempt 1 is known to have taken effect; attempt 2, with the same key, was refused."""
    facts = step(S.STARTED, call(-60, returned=True, applied=True), call(-10, returned=True, applied=False))
    assert next_action(facts, KEYED, POLICY, NOW) == Start()
    assert next_action(facts, KEYED_LOOKED_UP, POLICY, NOW) == Inspect()
    assert next_action(replace(facts, attempts_allowed=2), KEYED, POLICY, NOW) == Ask(CaseReason.OUTCOME_UNKNOWN)


def test_an_opaque_contract_with_a_lookup_is_refused() -> None:
    with pytest.raises(ValueError, match="queryable"):
        replace(OPAQUE, can_inspect=True)


@pytest.mark.parametrize("wrong", [{"retry_base": 0.0}, {"inspection_cap": float("nan")}, {"max_attempts": 0}])
def test_a_policy_under_which_the_machine_would_spin_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="policy must be"):
        Policy(**wrong)


def test_a_provider_that_is_still_at_work_is_not_a_question_before_the_call_is_over() -> None:
    """Five lookups fit into the first ten seconds of a call that may take thirty."""
    asked_early = replace(CUT_OFF, inspection_count=5)
    assert after_inspection(Pending(), NOW, asked_early, QUERYABLE, POLICY) == Wait(at(25))
    last_look = replace(CUT_OFF, inspection_count=6)
    assert after_inspection(Pending(), at(25), last_look, QUERYABLE, POLICY) == Ask(CaseReason.INSPECTION_INCONCLUSIVE)
