"""What a policy can ask for: approvals, people per decision, budgets, limits, drift, step-up. Plain data.

Every default is what holds where no rule of a policy says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from checkpoint.contracts import Reversibility
from checkpoint.decide import Policy
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


@dataclass(frozen=True)
class ApprovalRule:
    """The approval that a step needs before it runs.

    Attributes:
        needed: how many people must approve.
        groups: each must belong to one of these.
        self_approval: whether whoever submitted the workflow may be one of them.
        distinct: whether they must be different people; otherwise one may approve several times.
        wait_seconds: nobody can approve sooner after the request.
        expires_seconds: time for the answer, counted from the end of the wait.
        on_timeout: what then happens. Never APPROVE for what is irreversible.
        escalate_to: the groups that are asked next, with ESCALATE.
    """

    scope: Scope = Scope.STEP
    needed: int = 1
    groups: tuple[str, ...] = (APPROVER,)
    self_approval: bool = False
    distinct: bool = True
    wait_seconds: float = 0.0
    expires_seconds: float = 86_400.0
    on_timeout: OnTimeout = OnTimeout.EXPIRE
    escalate_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class DecisionRule:
    """How many people must give the same answer to a case; `groups` is empty where anyone who may decide will do."""

    needed: int = 1
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """`in_flight`: a step starts only while fewer steps of its tool than this are started; None for no limit."""

    in_flight: int | None = None


@dataclass(frozen=True)
class DriftRule:
    """What a change of policy, prompt or tool version does at the next dispatch.

    REAPPROVE: an approval given before does not count any more; a step that needs none goes on.
    """

    policy: DriftAnswer = DriftAnswer.REAPPROVE
    prompt: DriftAnswer = DriftAnswer.REAPPROVE
    tool: DriftAnswer = DriftAnswer.REAPPROVE


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
