"""What happens next with a step, and not before when: what `decide.next_action` will do, in words. Plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from checkpoint.actions import (
    Action,
    Ask,
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
from checkpoint.contracts import Contract
from checkpoint.decide import next_action
from checkpoint.states import CASE_RULES, STEP_TERMINAL, StepStatus


@dataclass(frozen=True)
class Outlook:
    """`words` complete "next: "; empty where nothing more happens. `at` is None where it can happen at once."""

    words: str
    at: datetime | None = None


_WORDS: dict[type[Action], str] = {
    Prepare: "its arguments are completed from earlier results, and then it is executed",
    Start: "it is executed",
    Inspect: "its effect is looked up",
    Verify: "its outcome is read back",
    ConcludeVerified: "it counts as done on its receipt",
    ConcludeFailed: "it counts as not done, and is then tried again or asked about",
    Wait: "it is decided again",
    Nothing: "",
}


def outlook(facts: StepFacts, contract: Contract | None, policy: Policy, now: datetime) -> Outlook:
    """The outlook for a step whose turn it is and about which nothing is asked.

    Args:
        contract: None while the step has no arguments.
    """
    if contract is None:
        return Outlook("" if facts.status in STEP_TERMINAL else _WORDS[Prepare])
    action = next_action(facts, contract, policy, now)
    if contract.asks and isinstance(action, Start):
        return Outlook("a person is asked")
    if contract.by_agent and isinstance(action, Start):
        return Outlook("its agent begins it")
    if not isinstance(action, Wait):
        return Outlook(_words(action))
    if facts.lease_until is not None and facts.lease_until > now:
        who = "its agent" if contract.by_agent and facts.status is StepStatus.STARTED else "a worker"
        return Outlook(f"{who} is acting on it; if it stops answering, another takes over", facts.lease_until)
    if contract.waits and facts.status is StepStatus.PREPARED:
        return Outlook("the time that it waits for comes", action.until)
    return Outlook(_words(next_action(facts, contract, policy, action.until)), action.until)


def _words(action: Action) -> str:
    if isinstance(action, Ask):
        return f"a person is asked: {CASE_RULES[action.reason].title}"
    return _WORDS[type(action)]
