"""Decision after decision against a provider that loses answers, lands requests late and forgets keys: one effect.

Hypothesis plays the world, within what the tool's contract promises. What is asserted is not one decision but their
sum: however often workers die and lookups mislead, the effect exists at most once unless a person was asked, and the
machine never says that it failed while the effect exists or can still come about.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import event, given
from hypothesis import strategies as st

from checkpoint.actions import (
    Action,
    Ask,
    AttemptFacts,
    ConcludeCommitted,
    ConcludeFailed,
    Inspect,
    Start,
    StepFacts,
    Wait,
)
from checkpoint.budgets import Policy
from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.decide import after_inspection, next_action
from checkpoint.outcomes import Absent, Found, Inconclusive, Inspection, Receipt
from checkpoint.states import StepStatus

BEGIN = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
DEADLINE, SETTLE = 10, 5
POLICY = Policy(max_attempts=3, max_inspections=3)
MOST_DECISIONS = 200

QUERYABLE = Contract(
    RecoveryClass.QUERYABLE, Reversibility.COMPENSABLE, deadline=DEADLINE, settle=SETTLE, can_inspect=True
)
OPAQUE = Contract(RecoveryClass.OPAQUE, Reversibility.IRREVERSIBLE, deadline=DEADLINE, settle=SETTLE)
KEYED = Contract(RecoveryClass.IDEMPOTENT, Reversibility.COMPENSABLE, deadline=DEADLINE, settle=SETTLE)
lifetimes = st.sampled_from([20.0, 30.0, 40.0])


@dataclass(frozen=True)
class Send:
    """One request: when it was made, and when it landed, if it did."""

    at: datetime
    landed_at: datetime | None


@dataclass
class World:
    """A provider, and the worker that calls it. Hypothesis draws what goes wrong."""

    draw: st.DataObject
    contract: Contract
    now: datetime = BEGIN
    sends: list[Send] = field(default_factory=list)

    def seconds(self, most: int) -> timedelta:
        return timedelta(seconds=self.draw.draw(st.integers(0, most)))

    def execute(self, facts: StepFacts) -> StepFacts:
        """A call: an answer, a refusal, silence, or the death of its worker at any moment."""
        started, deadline = self.now, self.now + timedelta(seconds=DEADLINE)
        ending = self.draw.draw(st.sampled_from(["receipt", "refused", "unknown", "lost"]))
        lands_at = started + self.seconds(DEADLINE if ending == "receipt" else DEADLINE + SETTLE)
        lands = ending == "receipt" or (ending != "refused" and self.draw.draw(st.booleans()))
        self.sends.append(Send(started, lands_at if lands else None))
        self.now = lands_at if ending == "receipt" else started + self.seconds(DEADLINE)
        applied = {"receipt": True, "refused": False}.get(ending)
        attempt = AttemptFacts(started, deadline, ending != "lost", applied)
        facts = replace(facts, attempts=[*facts.attempts, attempt], inspection_count=0, next_at=None)
        all_refused = all(attempt.applied is False for attempt in facts.attempts)
        status = StepStatus.FAILED if all_refused else StepStatus.STARTED
        return replace(facts, status=StepStatus.COMMITTED if applied else status)

    def look_up(self) -> Inspection:
        """An answer that is right at some moment between question and answer, or none."""
        seen_at = self.now + self.seconds(3)
        self.now = seen_at + self.seconds(3)
        if self.draw.draw(st.booleans()):
            return Inconclusive("the lookup timed out")
        return Found(Receipt()) if any(s.landed_at and s.landed_at <= seen_at for s in self.sends) else Absent()

    @property
    def effects(self) -> int:
        """How often the effect exists once everything has landed."""
        landed = [send for send in self.sends if send.landed_at is not None]
        if self.contract.recovery is not RecoveryClass.IDEMPOTENT:
            return len(landed)
        return sum(not self._recognised(send, landed[:index]) for index, send in enumerate(landed))

    def _recognised(self, send: Send, earlier: list[Send]) -> bool:
        """The provider knows a key from its first landing on, for its lifetime since the first send, and no longer."""
        assert self.contract.key_lifetime is not None
        assert send.landed_at is not None
        forgotten_at = self.sends[0].at + timedelta(seconds=self.contract.key_lifetime)
        known = any(other.landed_at is not None and other.landed_at <= send.at for other in earlier)
        return known and send.landed_at < forgotten_at


def carry_out(world: World) -> tuple[StepFacts, Ask | None]:
    """What the engine does: decides, acts, records, until the step is committed or a question."""
    facts = StepFacts(StepStatus.PREPARED, attempts_allowed=POLICY.max_attempts)
    for _ in range(MOST_DECISIONS):
        action: Action | ConcludeCommitted = next_action(facts, world.contract, POLICY, world.now)
        if isinstance(action, Start):
            facts = world.execute(facts)
        elif isinstance(action, Inspect):
            asked_at, answer = world.now, world.look_up()
            facts = replace(facts, inspection_count=facts.inspection_count + (not isinstance(answer, Absent)))
            action = after_inspection(answer, asked_at, facts, world.contract, POLICY)
        facts = follow(action, facts, world)
        if facts.status is StepStatus.COMMITTED or isinstance(action, Ask):
            return facts, action if isinstance(action, Ask) else None
    raise AssertionError(f"no end after {MOST_DECISIONS} decisions: {facts}")


def follow(action: Action | ConcludeCommitted, facts: StepFacts, world: World) -> StepFacts:
    """The facts after a verdict."""
    match action:
        case Wait(until):
            world.now = max(world.now, until)
            return replace(facts, next_at=until)
        case ConcludeCommitted():
            return replace(facts, status=StepStatus.COMMITTED)
        case ConcludeFailed():
            assert world.effects == 0, "the step counts as failed, and its effect exists or will"
            attempts = [replace(attempt, applied=False) for attempt in facts.attempts]
            return replace(facts, attempts=attempts, status=StepStatus.FAILED, next_at=None)
    return facts


def check(world: World) -> None:
    facts, question = carry_out(world)
    event(f"{facts.status}, {question}, {len(world.sends)} sends")
    assert world.effects <= 1, world.sends
    if facts.status is StepStatus.COMMITTED:
        assert world.effects == 1
    if question is not None and facts.status is StepStatus.STARTED:
        in_the_air = [attempt.deadline_at for attempt in facts.unresolved if not attempt.returned]
        assert all(deadline <= world.now for deadline in in_the_air), "asked about a call that is not over"


@given(st.data())
def test_s04_a_tool_with_a_lookup_and_no_key_makes_one_effect_however_answers_are_lost(data: st.DataObject) -> None:
    """S04, S08, S09."""
    check(World(data, QUERYABLE))


@given(st.data(), lifetimes, st.booleans())
def test_s04_a_keyed_tool_makes_one_effect_however_answers_are_lost(
    data: st.DataObject, key_lifetime: float, can_inspect: bool
) -> None:
    check(World(data, replace(KEYED, key_lifetime=key_lifetime, can_inspect=can_inspect)))


@given(st.data())
def test_s04_an_opaque_tool_is_called_again_only_after_refusals(data: st.DataObject) -> None:
    world = World(data, OPAQUE)
    check(world)
    assert all(send.landed_at is None for send in world.sends[:-1])
