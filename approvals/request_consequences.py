"""What each answer to a request for approval will do, in a sentence; read before it is given. Plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from approvals.rules.policy_words import duration
from checkpoint.contracts import Reversibility
from checkpoint.gates.rulings import ApprovalRule


class RequestAnswer(StrEnum):
    """What a person can do about a request."""

    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"
    WITHDRAW = "withdraw"


TITLES = {
    RequestAnswer.APPROVE: "Yes, it may run",
    RequestAnswer.REJECT: "No, it must not run",
    RequestAnswer.REQUEST_CHANGES: "Not like this",
    RequestAnswer.WITHDRAW: "Take it back",
}


@dataclass(frozen=True)
class Asking:
    """What the consequences depend on.

    Attributes:
        step: name of the step that waits.
        gravest: of the steps that the request covers.
        covered: steps that the request covers.
        given: people who have approved it.
        waiting: other steps of the workflow that have not run yet.
        happened: steps of the workflow that did take effect.
    """

    step: str
    gravest: Reversibility
    rule: ApprovalRule
    covered: int
    given: int
    waiting: int
    happened: int


def sentence(kind: RequestAnswer, asking: Asking) -> str:
    """What the answer will do."""
    parts = {RequestAnswer.APPROVE: _approve, RequestAnswer.REQUEST_CHANGES: _send_back}.get(kind, _end)(asking)
    return " ".join(part for part in parts if part)


def warning(kind: RequestAnswer, asking: Asking) -> str:
    """What cannot be mended afterwards; else empty."""
    if kind is RequestAnswer.APPROVE and asking.gravest is Reversibility.IRREVERSIBLE:
        return "What it does cannot be undone."
    return ""


def _approve(asking: Asking) -> list[str]:
    missing = asking.rule.needed - asking.given - 1
    if missing > 0:
        others = "1 other person has" if missing == 1 else f"{missing} other people have"
        return [f"Counts as {asking.given + 1} of {asking.rule.needed}. Nothing is sent before {others} approved, too."]
    if asking.covered > 1:
        sent = f"Sends “{asking.step}” and in their turn {_others(asking.covered - 1)} of this plan, each once"
    else:
        sent = f"Sends “{asking.step}” once"
    wait = asking.rule.wait_seconds
    first = f" {duration(wait)} from now; until then it can be withdrawn" if wait else " as soon as a worker is free"
    return [f"{sent}, with exactly what is shown here,{first}."]


def _send_back(asking: Asking) -> list[str]:
    what = f"“{asking.step}”" if asking.covered == 1 else f"“{asking.step}” and {_others(asking.covered - 1)}"
    return [f"Sends nothing. The agent reads your reason and can change {what}; then it is asked about anew."]


def _end(asking: Asking) -> list[str]:
    rest = asking.covered - 1 + asking.waiting
    happened = asking.happened
    return [
        f"“{asking.step}” is never sent, and the workflow is wound down.",
        f"{_others(rest)} will not run." if rest else "",
        f"{_others(happened)} that took effect {'stays' if happened == 1 else 'stay'} in place." if happened else "",
    ]


def _others(count: int) -> str:
    return "1 other step" if count == 1 else f"{count} other steps"
