"""The one table: every state has its entry, nothing contradicts it, and a workflow's status is a function of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations_with_replacement, pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint.models import Approval, Case, Step
from checkpoint.states import (
    APPROVAL_ARROWS,
    APPROVAL_INITIAL,
    CASE_ARROWS,
    CASE_INITIAL,
    CASE_RULES,
    OPEN_REQUESTS,
    STEP_ARROWS,
    STEP_INITIAL,
    STEP_TERMINAL,
    UNSETTLED,
    WORKFLOW_ARROWS,
    WORKFLOW_INITIAL,
    WORKFLOW_TERMINAL,
    ApprovalStatus,
    CaseReason,
    CaseStatus,
    Decision,
    StepStatus,
    WorkflowFacts,
    WorkflowStatus,
    workflow_status,
)

S, W = StepStatus, WorkflowStatus

# Moved in sets only: there is no such thing as preparing, starting or superseding a step by hand.
MOVED_IN_SETS_ONLY = {S.PREPARED, S.STARTED, S.SUPERSEDED}
NEVER_SENT = frozenset({S.PLANNED, S.PREPARED, S.FAILED})


@cache
def status_of(
    steps: tuple[StepStatus, ...], others: tuple[int, int, int, bool, bool], agents_turn: int
) -> WorkflowStatus:
    """The status of a workflow with these steps, in whichever order, and the other facts as WorkflowFacts has them."""
    counts = {status: steps.count(status) for status in set(steps)}
    return workflow_status(WorkflowFacts(counts, *others, agents_turn))


@dataclass(frozen=True)
class Situation:
    """A workflow that can exist: its steps in a fixed order, and what else its status depends on."""

    steps: tuple[StepStatus, ...]
    open_cases: int = 0
    open_approvals: int = 0
    sent_back: int = 0
    sealed: bool = True
    winding_down: bool = False
    agents_turn: int = 0

    @property
    def status(self) -> WorkflowStatus:
        """Asked for hundred thousands of times, about a few hundred sets of facts."""
        others = (self.open_cases, self.open_approvals, self.sent_back, self.sealed, self.winding_down)
        return status_of(tuple(sorted(self.steps)), others, self.agents_turn)

    @property
    def can_exist(self) -> bool:
        """An uncertain step has its case. Steps end unverified with their workflow, and then all of them do; or they
        are waived, and then something of their batch succeeded, still can, or is asked about.

        What was superseded has a step in its place; what was sent back to the agent was never sent; what the agent is
        to carry out itself is prepared or failed.
        """
        if self.open_cases < self.steps.count(S.UNCERTAIN) or set(self.steps) == {S.SUPERSEDED}:
            return False
        if self.agents_turn > self.steps.count(S.PREPARED) + self.steps.count(S.FAILED):
            return False
        if self.sent_back > self.steps.count(S.PLANNED) + self.steps.count(S.PREPARED):
            return False
        if self.winding_down:
            return NEVER_SENT.isdisjoint(self.steps)
        return not set(self.steps) <= {S.ABANDONED, S.SUPERSEDED}

    def wound_down(self) -> Situation:
        """The same, ended by a person: what is not in the air ends in the same transaction."""
        steps = tuple(S.ABANDONED if status in NEVER_SENT else status for status in self.steps)
        return replace(self, steps=steps, sent_back=0, winding_down=True, agents_turn=0)

    def edited(self) -> Iterator[Situation]:
        """The same, with another step in the place of one that was not sent; what was sent back with it is released."""
        for index, status in enumerate(self.steps):
            if status in (S.PLANNED, S.PREPARED):
                others = (*self.steps[:index], *self.steps[index + 1 :])
                for new in STEP_INITIAL:
                    for turn in (0, 1):
                        yield replace(
                            self, steps=(*others, S.SUPERSEDED, new), open_approvals=0, sent_back=0, agents_turn=turn
                        )


def turns(steps: Iterable[StepStatus]) -> tuple[int, ...]:
    """How many of the steps can be the agent's to carry out now; one stands for several."""
    return (0, 1) if {S.PREPARED, S.FAILED}.intersection(steps) else (0,)


def situations(most_steps: int) -> Iterator[Situation]:
    """Every situation that can exist with up to so many steps, two open cases, one open approval and one sent back."""
    for size in range(1, most_steps + 1):
        for steps in combinations_with_replacement(S, size):
            either = (True, False)
            for cases, approvals, back, sealed, ending, turn in product(
                (0, 1, 2), (0, 1), (0, 1), either, either, turns(steps)
            ):
                situation = Situation(steps, cases, approvals, back, sealed, ending, turn)
                if situation.can_exist:
                    yield situation


def single_moves(before: Situation) -> Iterator[Situation]:
    """Every way in which one fact changes."""
    for index, status in enumerate(before.steps):
        for target in STEP_ARROWS[status] - {S.ABANDONED, S.SUPERSEDED}:
            yield replace(before, steps=(*before.steps[:index], target, *before.steps[index + 1 :]))
    for change in (-1, 1):
        yield replace(before, open_cases=before.open_cases + change)
        yield replace(before, open_approvals=before.open_approvals + change)
    yield replace(before, agents_turn=1 - before.agents_turn)
    if before.open_approvals:
        yield replace(before, open_approvals=before.open_approvals - 1, sent_back=before.sent_back + 1)
    yield from before.edited()
    if not before.sealed:
        yield replace(before, sealed=True)
        yield replace(before, steps=(*before.steps, S.PREPARED))
    yield before.wound_down()


def within_one_transaction(status: StepStatus) -> frozenset[StepStatus]:
    """Where a step can be after one transaction. Whoever starts a step must commit before anything else is known."""
    found, to_follow = {status}, [status]
    while to_follow:
        for target in STEP_ARROWS[to_follow.pop()] - found - {S.ABANDONED, S.SUPERSEDED}:
            found.add(target)
            if target is not S.STARTED:
                to_follow.append(target)
    return frozenset(found)


def transactions(before: Situation) -> Iterator[Situation]:
    """Every way in which one transaction can change the situation: any number of moves at once.

    Sending back, and editing, are transactions of their own, of people and agents.
    """
    yield from before.edited()
    if before.open_approvals:
        yield replace(before, open_approvals=0, sent_back=1)
    appended: tuple[tuple[StepStatus, ...], ...] = ((),)
    if not (before.sealed or before.winding_down):
        appended = ((), *((status,) for status in (S.PLANNED, *within_one_transaction(S.PREPARED))))
    ways = [within_one_transaction(status) for status in before.steps]
    for steps, more in product(product(*ways), appended):
        for cases, approvals, sealed, turn in product((0, 1, 2), (0, 1), {before.sealed, True}, turns(steps + more)):
            after = Situation(steps + more, cases, approvals, before.sent_back, sealed, before.winding_down, turn)
            yield after.wound_down() if after.winding_down else after
            yield after.wound_down()


def changes_of_status(
    most_steps: int, ways: Callable[[Situation], Iterator[Situation]]
) -> set[tuple[WorkflowStatus, WorkflowStatus]]:
    """Every change of status that the ways lead to, from situations that have not ended."""
    found = set()
    for before in situations(most_steps):
        if before.status not in WORKFLOW_TERMINAL:
            found |= {(before.status, after.status) for after in ways(before) if after.can_exist}
    return {(before, after) for before, after in found if before is not after}


ARROWS = {(before, after) for before, targets in WORKFLOW_ARROWS.items() for after in targets}


def test_every_state_has_an_entry() -> None:
    assert set(WORKFLOW_ARROWS) == set(W)
    assert set(STEP_ARROWS) == set(S)
    assert set(CASE_ARROWS) == set(CaseStatus)
    assert set(APPROVAL_ARROWS) == set(ApprovalStatus)
    assert set(CASE_RULES) == set(CaseReason)


@pytest.mark.parametrize(
    ("arrows", "terminal"),
    [
        (WORKFLOW_ARROWS, WORKFLOW_TERMINAL),
        (STEP_ARROWS, STEP_TERMINAL),
        (CASE_ARROWS, {CaseStatus.DECIDED, CaseStatus.SETTLED}),
        (APPROVAL_ARROWS, set(ApprovalStatus) - OPEN_REQUESTS),
    ],
)
def test_exactly_the_terminal_states_lead_nowhere_and_no_arrow_stays(
    arrows: dict[str, frozenset[str]], terminal: frozenset[str]
) -> None:
    assert {state for state, targets in arrows.items() if not targets} == set(terminal)
    assert not [state for state, targets in arrows.items() if state in targets]


@pytest.mark.parametrize(
    ("arrows", "initial"),
    [
        (WORKFLOW_ARROWS, WORKFLOW_INITIAL),
        (STEP_ARROWS, STEP_INITIAL),
        (CASE_ARROWS, CASE_INITIAL),
        (APPROVAL_ARROWS, APPROVAL_INITIAL),
    ],
)
def test_every_state_is_reached_from_an_initial_one(arrows: dict[str, frozenset[str]], initial: frozenset[str]) -> None:
    reached: set[str] = set(initial)
    while more := {target for state in reached for target in arrows[state]} - reached:
        reached |= more
    assert reached == set(arrows)


def _methods(model: type[Step | Case | Approval]) -> set[tuple[str, str]]:
    field = model._meta.get_field("status")
    return {(str(move.source), str(move.target)) for move in field.get_all_transitions(model)}


def test_the_methods_of_a_step_are_its_arrows() -> None:
    by_hand = {(s.value, t.value) for s, targets in STEP_ARROWS.items() for t in targets - MOVED_IN_SETS_ONLY}
    assert _methods(Step) == by_hand


def test_the_methods_of_a_case_are_its_arrows() -> None:
    assert _methods(Case) == {(s.value, t.value) for s, targets in CASE_ARROWS.items() for t in targets}


def test_the_methods_of_an_approval_are_what_people_do_along_its_arrows() -> None:
    """The rest (consumed, expired, superseded) happens in sets."""
    by_hand = {
        ApprovalStatus.APPROVED,
        ApprovalStatus.REJECTED,
        ApprovalStatus.RETURNED,
        ApprovalStatus.WITHDRAWN,
    }
    arrows = {(s.value, t.value) for s, targets in APPROVAL_ARROWS.items() for t in targets & by_hand}
    assert _methods(Approval) == arrows


@pytest.mark.parametrize("reason", CaseReason)
def test_what_a_decision_leads_to_can_be_reached_from_where_its_case_holds_the_step(reason: CaseReason) -> None:
    rule = CASE_RULES[reason]
    held = [rule.step_status] if rule.step_status else [S.PLANNED, S.PREPARED]
    for kind, target in rule.decisions.items():
        # What a person answers starts, commits and verifies the step at once.
        way = [S.STARTED, S.COMMITTED, S.VERIFIED] if kind is Decision.ANSWER else [target]
        for status in held:
            for before, after in pairwise([status, *filter(None, way)]):
                assert after in STEP_ARROWS[before]


@pytest.mark.parametrize("reason", CaseReason)
def test_every_case_can_be_answered_and_confirming_never_sends_again(reason: CaseReason) -> None:
    decisions = CASE_RULES[reason].decisions
    assert decisions
    assert decisions.get(Decision.CONFIRM) in (None, S.COMMITTED, S.VERIFIED)


step_counts = st.dictionaries(st.sampled_from(S), st.integers(0, 5))
all_facts = st.builds(
    WorkflowFacts,
    step_counts,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2),
    sealed=st.booleans(),
    winding_down=st.booleans(),
    agents_turn=st.integers(0, 2),
)


@given(all_facts)
def test_completed_means_that_every_step_is_verified_or_waived_and_no_more_will_come(facts: WorkflowFacts) -> None:
    if workflow_status(facts) is W.COMPLETED:
        assert facts.sealed
        assert facts.count(S.VERIFIED, S.SUPERSEDED) + facts.waived == facts.count(*S)
        assert not facts.open_cases


@given(all_facts)
def test_abandoned_exactly_when_winding_down_with_nothing_in_the_air(facts: WorkflowFacts) -> None:
    nothing_in_the_air = not facts.count(S.STARTED, S.COMMITTED, S.UNCERTAIN)
    assert (workflow_status(facts) is W.ABANDONED) == (facts.winding_down and nothing_in_the_air)


@given(all_facts)
def test_needs_review_exactly_while_a_person_is_asked_and_the_workflow_has_not_ended(facts: WorkflowFacts) -> None:
    asked = bool(facts.open_cases or facts.count(S.UNCERTAIN))
    assert (workflow_status(facts) is W.NEEDS_REVIEW) == (asked and workflow_status(facts) is not W.ABANDONED)


@given(all_facts)
def test_a_call_in_the_air_shows_unless_a_person_is_asked(facts: WorkflowFacts) -> None:
    if workflow_status(facts) is not W.NEEDS_REVIEW:
        assert (workflow_status(facts) is W.EXECUTING) >= bool(facts.count(S.STARTED))
        if not facts.count(S.STARTED):
            assert (workflow_status(facts) is W.VERIFYING) == bool(facts.count(S.COMMITTED))


@given(all_facts)
def test_a_workflow_that_waits_for_approval_or_agent_has_nothing_in_the_air(facts: WorkflowFacts) -> None:
    if workflow_status(facts) is W.AWAITING_APPROVAL:
        assert facts.open_approvals
        assert not facts.count(*UNSETTLED)
    if workflow_status(facts) is W.AWAITING_AGENT and not (facts.sent_back or facts.agents_turn):
        assert not facts.sealed
        assert facts.count(S.VERIFIED, S.SUPERSEDED) + facts.waived == facts.count(*S)
    if workflow_status(facts) is W.AWAITING_AGENT:
        assert not facts.count(*UNSETTLED)


def test_every_status_is_reached() -> None:
    assert {situation.status for situation in situations(2)} == set(W)


def test_a_new_workflow_is_planned() -> None:
    for steps in combinations_with_replacement(STEP_INITIAL, 3):
        assert {Situation(steps, sealed=sealed).status for sealed in (True, False)} == WORKFLOW_INITIAL


def test_every_change_that_one_move_causes_is_an_arrow() -> None:
    assert changes_of_status(4, single_moves) - ARROWS == set()


def test_exactly_the_changes_that_one_transaction_can_cause_are_arrows() -> None:
    """A missing arrow would make PostgreSQL refuse a lawful turn; a needless one would let an unlawful one pass."""
    assert changes_of_status(2, transactions) == ARROWS
