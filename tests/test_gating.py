"""What stands between a step and its start, over the whole domain."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from checkpoint.gates.gating import ApprovalFacts, Go, Hold, Pins, Request, SentBack, TimedOut, pass_gate
from checkpoint.gates.rulings import ApprovalRule, Scope
from checkpoint.states import ApprovalStatus

NOW = datetime(2026, 12, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
PINS = Pins("a" * 64, uuid.uuid4(), uuid.uuid4())
RULE = ApprovalRule()


def facts(
    status: ApprovalStatus, pins: Pins = PINS, *, late: bool = False, expired: bool = False, waits: bool = False
) -> ApprovalFacts:
    """An approval; `late` for an answer, `expired` for its use."""
    answer_by, use_by = (NOW - HOUR if over else NOW + HOUR for over in (late or expired, expired))
    return ApprovalFacts(status, pins, answer_by, use_by, NOW + HOUR / 2 if waits else None)


CHANGED = [
    replace(PINS, content_hash="b" * 64),
    replace(PINS, policy_version_id=uuid.uuid4()),
    replace(PINS, tool_version_id=uuid.uuid4()),
    replace(PINS, scope=Scope.PLAN),
]


def test_without_a_rule_and_without_an_approval_a_step_starts() -> None:
    assert pass_gate(None, None, PINS, NOW) == Go()


def test_with_a_rule_approval_is_requested() -> None:
    assert pass_gate(RULE, None, PINS, NOW) == Request()


@pytest.mark.parametrize("changed", CHANGED, ids=["arguments", "policy", "tool", "scope"])
@pytest.mark.parametrize("status", [ApprovalStatus.PENDING, ApprovalStatus.APPROVED])
def test_s12_what_changed_since_is_asked_again(changed: Pins, status: ApprovalStatus) -> None:
    assert pass_gate(RULE, facts(status, changed), PINS, NOW) == Request(ends=ApprovalStatus.SUPERSEDED)


def test_s12_a_further_send_after_a_change_is_asked_again() -> None:
    for changed in CHANGED:
        assert pass_gate(RULE, facts(ApprovalStatus.CONSUMED, changed), PINS, NOW) == Request()


def test_s13_an_approval_past_its_expiry_starts_nothing() -> None:
    approved = pass_gate(RULE, facts(ApprovalStatus.APPROVED, expired=True), PINS, NOW)
    assert approved == Request(ends=ApprovalStatus.EXPIRED)
    assert pass_gate(RULE, facts(ApprovalStatus.PENDING, expired=True), PINS, NOW) == TimedOut()


def test_the_wait_after_the_last_answer_is_not_taken_from_the_time_for_the_start() -> None:
    assert pass_gate(RULE, facts(ApprovalStatus.APPROVED, late=True), PINS, NOW) == Go(consume=True)
    assert pass_gate(RULE, facts(ApprovalStatus.PENDING, late=True), PINS, NOW) == TimedOut()


def test_s17_a_given_approval_is_used_up_by_the_start() -> None:
    assert pass_gate(RULE, facts(ApprovalStatus.APPROVED), PINS, NOW) == Go(consume=True)
    assert pass_gate(RULE, facts(ApprovalStatus.CONSUMED), PINS, NOW) == Go()


def test_the_wait_after_the_last_approval_holds() -> None:
    assert pass_gate(RULE, facts(ApprovalStatus.APPROVED, waits=True), PINS, NOW) == Hold(NOW + HOUR / 2)


def test_what_was_sent_back_to_the_agent_does_not_run_whatever_the_policy_asks() -> None:
    for rule, pins in itertools.product([RULE, None], [PINS, *CHANGED]):
        assert pass_gate(rule, facts(ApprovalStatus.RETURNED, expired=True), pins, NOW) == SentBack()


def test_a_rule_that_is_gone_closes_what_it_had_opened() -> None:
    assert pass_gate(None, facts(ApprovalStatus.PENDING), PINS, NOW) == Go(ends=ApprovalStatus.SUPERSEDED)


def test_nothing_starts_under_a_rule_without_a_valid_approval_for_exactly_this() -> None:
    """Exhaustive: every status, every pin changed or not, each time over or not, for a step and for a plan."""
    for status, changed, scope in itertools.product(ApprovalStatus, [PINS, *CHANGED], Scope):
        now = replace(PINS, scope=scope)
        for late, expired, waits in itertools.product([False, True], repeat=3):
            gate = pass_gate(RULE, facts(status, changed, late=late, expired=expired, waits=waits), now, NOW)
            if isinstance(gate, Go):
                assert changed == now
                assert status is ApprovalStatus.CONSUMED or (
                    status is ApprovalStatus.APPROVED and not expired and not waits and gate.consume
                )
