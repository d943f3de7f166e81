"""Whether and when a notice is sent, as pure functions of facts. Plain Python, no framework."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo


class NoticeKind(StrEnum):
    """What somebody is told."""

    ASKED = "asked"
    REMINDER = "reminder"
    ESCALATION = "escalation"
    ASSIGNED = "assigned"
    SECOND_PERSON = "second_person"
    DECIDED = "decided"
    OUTCOME = "outcome"


class NoticeState(StrEnum):
    """Where a notice is. From the last three only a person takes it back to `waiting`."""

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"
    SKIPPED = "skipped"


class ChannelFormat(StrEnum):
    """How a team channel is spoken to."""

    SLACK = "slack"
    STANDARD = "standard"


UNSETTLED = (NoticeState.SENDING.value, NoticeState.WAITING.value)
CALLS_FOR_AN_ANSWER = frozenset(NoticeKind) - {NoticeKind.DECIDED, NoticeKind.OUTCOME}
# An escalation means that those who sleep have let it lie for too long already.
URGENT = frozenset({NoticeKind.ESCALATION})

FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=15)


@dataclass(frozen=True)
class QuietHours:
    """From one wall-clock time to another, past midnight where the second is the earlier one."""

    begins: time
    ends: time
    zone: ZoneInfo

    def end_of(self, now: datetime) -> datetime | None:
        """When the quiet hours that hold at `now` end, in UTC; None outside of them."""
        local = now.astimezone(self.zone)
        if not self._hold(local.time()):
            return None
        days = 1 if local.time() >= self.ends else 0
        end = datetime.combine(local.date() + timedelta(days=days), self.ends, self.zone)
        return end.astimezone(UTC)

    def _hold(self, at: time) -> bool:
        if self.begins <= self.ends:
            return self.begins <= at < self.ends
        return at >= self.begins or at < self.ends


@dataclass(frozen=True)
class Preferences:
    """What a person wants to be told by e-mail; by default everything, at once."""

    email: bool = True
    muted: AbstractSet[str] = frozenset()
    quiet: QuietHours | None = None


@dataclass(frozen=True)
class PersonFacts:
    """What is true about a notice to a person with an active account when its turn comes.

    Attributes:
        may_see: the person sees the workflow.
        may_act: the person may do what the notice calls for.
        mail_works: the installation has a mail server.
    """

    kind: NoticeKind
    still_open: bool
    may_see: bool
    may_act: bool
    address: str
    mail_works: bool
    preferences: Preferences


@dataclass(frozen=True)
class Send:
    """It goes out now."""


@dataclass(frozen=True)
class Skip:
    """It is not sent, and why not."""

    reason: str


@dataclass(frozen=True)
class Wait:
    """It is sent later."""

    until: datetime


Verdict = Send | Skip | Wait

ANSWERED = "the question was closed before this was sent"


def verdict_on_person(facts: PersonFacts, *, now: datetime) -> Verdict:
    """Rights and wishes count as they are now, not as they were when the notice was written (S25)."""
    wishes = facts.preferences
    reasons = [
        (not facts.may_see, "the person may no longer see the workflow"),
        (facts.kind in CALLS_FOR_AN_ANSWER and not facts.still_open, ANSWERED),
        (not facts.may_act, "the person may no longer do what this calls for"),
        (not facts.address, "the account has no e-mail address"),
        (not wishes.email, "the person wants no e-mail"),
        (facts.kind in wishes.muted, f"the person wants no e-mail of the kind “{facts.kind}”"),
        (not facts.mail_works, "this installation has no mail server (EMAIL_HOST)"),
    ]
    for holds, reason in reasons:
        if holds:
            return Skip(reason)
    until = wishes.quiet.end_of(now) if wishes.quiet and facts.kind not in URGENT else None
    return Wait(until) if until else Send()


def verdict_on_channel(kind: NoticeKind, *, still_open: bool, enabled: bool, wanted: bool) -> Verdict:
    """A channel has no quiet hours: whoever reads it has its own."""
    if not enabled:
        return Skip("the channel is switched off")
    if not wanted:
        return Skip(f"the channel no longer takes the kind “{kind}”")
    if kind in CALLS_FOR_AN_ANSWER and not still_open:
        return Skip(ANSWERED)
    return Send()


def pause_after(attempts: int, *, asked_for: timedelta = timedelta(0)) -> timedelta:
    """How long to wait after so many failed attempts: doubling, capped; longer where the receiver asks for it.

    The receiver's own wish (Retry-After) is capped too, so that it cannot put a notice off for ever.
    """
    doubled: timedelta = FIRST_PAUSE * 2 ** min(attempts - 1, 10)
    return min(max(doubled, asked_for), LONGEST_PAUSE)
