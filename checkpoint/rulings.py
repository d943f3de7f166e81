"""What the policy in force asks before a step may start. Plain data; people's rules live in `approvals`.

The core does not read policies itself: whoever knows how (`approvals.apps`) is plugged in with `use`. Without it
nothing starts, rather than everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from checkpoint.decide import Policy

OnTimeout = Literal["expire", "reject", "escalate"]
Drift = Literal["continue", "reapprove", "review"]


@dataclass(frozen=True)
class StepDescription:
    """What a rule may look at."""

    tool: str
    reversibility: str
    workflow_kind: str
    team: str
    arguments: Any


@dataclass(frozen=True)
class ApprovalRule:
    """Who must allow a step before it runs. Times are seconds.

    Attributes:
        needed: how many different people must approve.
        groups: in one of which each of them must be; empty for anybody with the right.
        self_approval: whether the person who submitted the workflow counts.
        wait: time between the last approval and the first send, in which it can still be withdrawn.
        expires: time after the request in which it can be approved and used.
    """

    needed: int = 1
    groups: tuple[str, ...] = ()
    self_approval: bool = False
    wait: float = 0.0
    expires: float = 86_400.0
    on_timeout: OnTimeout = "expire"

    def to_json(self) -> dict[str, Any]:
        """As an approval stores it."""
        return asdict(self) | {"groups": list(self.groups)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ApprovalRule:
        """Reads what `to_json` wrote."""
        return cls(**stored | {"groups": tuple(stored["groups"])})


@dataclass(frozen=True)
class Ruling:
    """What holds for one step under one policy version.

    Attributes:
        drift: what a policy that changed since planning does at the next dispatch.
        reasons: which rule set what, for people.
    """

    budgets: Policy = field(default_factory=Policy)
    approval: ApprovalRule | None = None
    drift: Drift = "reapprove"
    reasons: tuple[str, ...] = field(default=())


Evaluator = Callable[[dict[str, Any], StepDescription], Ruling]


def _nobody(rules: dict[str, Any], description: StepDescription) -> Ruling:
    raise LookupError("nobody is plugged in who can read policies: is the app `approvals` installed?")


_evaluator: list[Evaluator] = [_nobody]


def use(evaluator: Evaluator) -> None:
    """Plugs in who reads policies: a pure function of a policy version's rules and a step."""
    _evaluator[0] = evaluator


def ruling(rules: dict[str, Any], description: StepDescription) -> Ruling:
    """What these rules ask of this step."""
    return _evaluator[0](rules, description)
