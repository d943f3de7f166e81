"""Whether a step may start now, as far as approval goes: one pure function. Plain Python, no framework.

An approval is bound to exact arguments, policy, prompt and tool versions (S12, S15) and is used once (S17): the first
send consumes it. A further send with the same key goes out under the same approval while nothing has changed. Of an
approval for a whole plan each step has a share of its own, to which the same holds.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from checkpoint.gates.rulings import ApprovalRule, Scope
from checkpoint.states import ApprovalStatus


@dataclass(frozen=True)
class Pins:
    """What an approval was given for, and what would be sent now.

    Attributes:
        content_hash: of the arguments; in a plan, of the template of arguments that wait for earlier results.
        tool_version_id: the version that the step pins, and sends with.
        scope: whether it is a step's own approval or its share of a plan's.
        prompt_version: the agent's prompt; None in approvals from before it was kept.
        newest_tool_id: the newest version of the tool, which may be another than the pinned one; None as above.
    """

    content_hash: str
    policy_version_id: uuid.UUID
    tool_version_id: uuid.UUID
    scope: Scope = Scope.STEP
    prompt_version: str | None = None
    newest_tool_id: uuid.UUID | None = None


@dataclass(frozen=True)
class ApprovalFacts:
    """The newest approval of a step.

    Attributes:
        usable_from: when the wait after the last answer is over; None for at once.
    """

    status: ApprovalStatus
    pins: Pins
    answer_by: datetime
    use_by: datetime
    usable_from: datetime | None


@dataclass(frozen=True)
class Go:
    """The step may start; `consume` uses the approval up, `ends` closes one that is not needed any more."""

    consume: bool = False
    ends: ApprovalStatus | None = None


@dataclass(frozen=True)
class Request:
    """Ask for approval; an earlier one that no longer fits ends as `ends`."""

    ends: ApprovalStatus | None = None


@dataclass(frozen=True)
class TimedOut:
    """Nobody answered in time."""


@dataclass(frozen=True)
class Hold:
    """Not before that time, unless somebody answers."""

    until: datetime


@dataclass(frozen=True)
class SentBack:
    """A person asked the agent to change it; whatever the policy says, it does not run as it is."""


Gate = Go | Request | TimedOut | Hold | SentBack

_STANDING = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.CONSUMED)


def pass_gate(rule: ApprovalRule | None, approval: ApprovalFacts | None, pins: Pins, now: datetime) -> Gate:
    """What stands between a step and its start.

    Args:
        rule: what the policy in force asks; None where it asks nothing.
        approval: the newest approval of the step, if there ever was one.
        pins: what would be sent now.
    """
    if approval is not None and approval.status is ApprovalStatus.RETURNED:
        return SentBack()
    if approval is None or approval.status not in _STANDING:
        return Request() if rule is not None else Go()
    used = approval.status is ApprovalStatus.CONSUMED
    unused_ends = None if used else ApprovalStatus.SUPERSEDED
    if rule is None:
        return Go(ends=unused_ends)
    if approval.pins != pins:
        return Request(ends=unused_ends)
    return Go() if used else _unused(approval, now)


def _unused(approval: ApprovalFacts, now: datetime) -> Gate:
    """An approval, asked for or given, for exactly what would be sent now."""
    if approval.status is not ApprovalStatus.APPROVED:
        return TimedOut() if now >= approval.answer_by else Hold(approval.answer_by)
    if now >= approval.use_by:
        return Request(ends=ApprovalStatus.EXPIRED)
    if approval.usable_from is not None and now < approval.usable_from:
        return Hold(approval.usable_from)
    return Go(consume=True)
