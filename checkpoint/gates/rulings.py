"""What a policy asks of a step: approvals, people per decision, budgets, limits, drift, step-up. Plain data.

Every default is what holds where no rule of a policy says otherwise. The core does not read policies itself: whoever
knows how (`approvals.apps`) is plugged in with `use`. Without it nothing starts, rather than everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from checkpoint.budgets import Policy
from checkpoint.contracts import Contract, Reversibility
from checkpoint.gates.pacing import Rate
from checkpoint.states import CASE_RULES, CaseReason, Decision

APPROVER = "Approver"


class Scope(StrEnum):
    """What one approval allows: its step, or with those of other steps the whole plan. The stricter comes later."""

    PLAN = "plan"
    STEP = "step"


class OnTimeout(StrEnum):
    """What becomes of an approval that nobody gave in time. The stricter comes later."""

    APPROVE = "approve"
    ESCALATE = "escalate"
    EXPIRE = "expire"
    REJECT = "reject"


class DriftAnswer(StrEnum):
    """What happens when something pinned changed before the next dispatch. The stricter comes later."""

    CONTINUE = "continue"
    REAPPROVE = "reapprove"
    REVIEW = "review"


class OnFailure(StrEnum):
    """What becomes of a plan when a step of a batch has failed for good. The stricter comes later."""

    CONTINUE = "continue"
    WAIT = "wait"
    STOP = "stop"


@dataclass(frozen=True)
class ApprovalRule:
    """The approval that a step needs before it runs.

    Attributes:
        needed: how many different people must approve; nobody counts twice.
        groups: each must belong to one of these.
        self_approval: whether whoever submitted the workflow may be one of them.
        wait_seconds: time between the last approval and the first send, in which it can still be withdrawn.
        expires_seconds: time after the request in which it can be approved; and, the wait not counted, used.
        on_timeout: what happens when nobody answered in time. Never APPROVE for what is irreversible.
        escalate_to: the groups that are asked next, with ESCALATE.
    """

    scope: Scope = Scope.STEP
    needed: int = 1
    groups: tuple[str, ...] = (APPROVER,)
    self_approval: bool = False
    wait_seconds: float = 0.0
    expires_seconds: float = 86_400.0
    on_timeout: OnTimeout = OnTimeout.EXPIRE
    escalate_to: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As an approval stores it."""
        return asdict(self) | {"groups": list(self.groups), "escalate_to": list(self.escalate_to)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ApprovalRule:
        """Reads what `to_json` wrote."""
        typed = {
            "scope": Scope(stored["scope"]),
            "on_timeout": OnTimeout(stored["on_timeout"]),
            "groups": tuple(stored["groups"]),
            "escalate_to": tuple(stored["escalate_to"]),
        }
        known = {each.name: stored[each.name] for each in fields(cls) if each.name in stored}
        return cls(**{**known, **typed})


@dataclass(frozen=True)
class DecisionRule:
    """How many people must give the same answer to a case; `groups` is empty where anyone who may decide will do."""

    needed: int = 1
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """How much may go on at once. None stands for no limit.

    Attributes:
        in_flight: a step starts only while fewer steps of its tool than this are started, by all workers together.
        in_flight_per_workflow: a step starts only while fewer steps of its workflow than this are started.
        starts_per_minute: so many starts of its tool, repeated ones too, by all workers together.
        burst: so many of them at once after a pause; None for two seconds' worth.
    """

    in_flight: int | None = None
    in_flight_per_workflow: int | None = None
    starts_per_minute: float | None = None
    burst: int | None = None

    @property
    def rate(self) -> Rate | None:
        """The rate of starts."""
        return None if self.starts_per_minute is None else Rate.of(self.starts_per_minute, self.burst)

    def over(self, contract: Contract) -> Limits:
        """What holds for a step: where the policy says nothing, its tool's own limits do."""
        own_rate = self.starts_per_minute is None
        return Limits(
            in_flight=contract.in_flight if self.in_flight is None else self.in_flight,
            in_flight_per_workflow=self.in_flight_per_workflow,
            starts_per_minute=contract.starts_per_minute if own_rate else self.starts_per_minute,
            burst=contract.burst if own_rate and self.burst is None else self.burst,
        )


@dataclass(frozen=True)
class DriftRule:
    """What a change of policy, prompt or tool version does at the next dispatch.

    REAPPROVE: an approval given before does not count any more; a step that needs none goes on.
    """

    policy: DriftAnswer = DriftAnswer.REAPPROVE
    prompt: DriftAnswer = DriftAnswer.REAPPROVE
    tool: DriftAnswer = DriftAnswer.REAPPROVE


@dataclass(frozen=True)
class BatchRule:
    """What becomes of a plan when a batch does not succeed as a whole.

    Attributes:
        on_failure: a step of the batch has failed and no tries are left. CONTINUE: it is waived, and the plan goes on
            with what succeeded. WAIT: a person is asked. STOP: the workflow winds down.
    """

    on_failure: OnFailure = OnFailure.WAIT


Decisions = Mapping[CaseReason, Mapping[Decision, DecisionRule]]
ALL_DECISIONS: Decisions = {
    reason: {decision: DecisionRule() for decision in case.decisions} for reason, case in CASE_RULES.items()
}


@dataclass(frozen=True)
class Ruling:
    """All that a policy says about one step.

    Attributes:
        approval: None where the step needs none.
        decisions: for every reason of a case, the answers that may be given.
        step_up: whoever approves or decides must have authenticated again shortly before.
        reasons: which rule set what, in the order in which the rules applied. Two rulings that differ only here are
            equal.
    """

    budgets: Policy = field(default_factory=Policy)
    approval: ApprovalRule | None = None
    decisions: Decisions = field(default_factory=lambda: ALL_DECISIONS)
    limits: Limits = field(default_factory=Limits)
    drift: DriftRule = field(default_factory=DriftRule)
    batch: BatchRule = field(default_factory=BatchRule)
    step_up: bool = False
    reasons: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class StepDescription:
    """All that a ruling depends on.

    Attributes:
        tool: the tool's name, without its version.
        kind: the workflow's kind.
        team: slug of the team that owns the workflow.
        arguments: canonical JSON; None while they refer to results that are not there yet.
    """

    tool: str
    reversibility: Reversibility
    kind: str
    team: str
    arguments: str | None = None


def describe(
    *, tool: str, variants: Sequence[Mapping[str, Any]], variant: str, kind: str, team: str, arguments: str | None
) -> StepDescription:
    """The description of a step.

    Args:
        variants: those of the tool version that the step pins, as it stores them.
        variant: the one that holds for the arguments; empty before they are there, which counts as the gravest.
    """
    possible = [each["contract"]["reversibility"] for each in variants if variant in ("", each["name"])]
    gravest = max(map(Reversibility, possible), key=list(Reversibility).index)
    return StepDescription(tool, gravest, kind, team, arguments)


Judge = Callable[[StepDescription], Ruling]
Judged = tuple[StepDescription, Ruling]


@dataclass(frozen=True)
class Interpreter:
    """Who understands policies.

    Attributes:
        read: makes of a policy version's rules a pure function of a step; raises RecordDamaged where they are none.
        govern: the one approval of several steps of a plan, which is the strictest.
    """

    read: Callable[[Mapping[str, Any]], Judge]
    govern: Callable[[Iterable[Judged]], ApprovalRule | None]


def _nobody(*_: object) -> Any:
    raise LookupError("nobody is plugged in who can read policies: is the app `approvals` installed?")


_interpreter: list[Interpreter] = [Interpreter(_nobody, _nobody)]


def use(interpreter: Interpreter) -> None:
    """Plugs in who understands policies."""
    _interpreter[0] = interpreter


def judge(rules: Mapping[str, Any]) -> Judge:
    """Who says what these rules ask of a step. Raises as `Interpreter.read`."""
    return _interpreter[0].read(rules)


def governing(steps: Iterable[Judged]) -> ApprovalRule | None:
    """The approval that several steps of a plan need together; None where none of them needs one for the plan."""
    return _interpreter[0].govern(steps)
