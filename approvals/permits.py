"""Who may answer a request for approval: one function for every channel and every person (S16). Plain Python."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from checkpoint.gates.rulings import ApprovalRule


@dataclass(frozen=True)
class Voter:
    """A person as far as approving goes.

    Attributes:
        requester: the person submitted the workflow.
        answered: the person has answered this request already.
    """

    has_right: bool
    groups: Set[str]
    requester: bool
    answered: bool


def refusal(rule: ApprovalRule, voter: Voter) -> str:
    """Why this person may not answer, as a sentence; empty where the person may."""
    if not voter.has_right:
        return "You may see this, but you may not decide on approvals. Ask an administrator for the group Approver."
    if rule.groups and not set(rule.groups) & voter.groups:
        return f"The policy wants somebody of {' or '.join(rule.groups)}, and you are in none of these groups."
    if voter.requester and not rule.self_approval:
        return "You submitted this workflow, and the policy does not let people approve what they asked for themselves."
    if voter.answered:
        return "You have answered this request already; the policy wants another person."
    return ""
