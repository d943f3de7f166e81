"""The actions that there are on a step, and the facts on which the next one depends. Plain data for `decide`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from checkpoint.states import CaseReason, StepStatus


@dataclass(frozen=True)
class AttemptFacts:
    """What is known of one attempt.

    Attributes:
        started_at: database time of the claim, before anything was sent.
        deadline_at: database time after which the call sends nothing more.
        returned: the call came back to the worker that made it, so nothing more will be sent by it.
        applied: whether the effect took place; None while nobody knows.
        word_until: until when the host of the worker that made it may still say what was recorded there; None where
            nothing is to be waited for.
    """

    started_at: datetime
    deadline_at: datetime
    returned: bool
    applied: bool | None
    word_until: datetime | None = None

    @property
    def unread_until(self) -> datetime:
        """Until when it is left open where nobody can look it up, since it did not come back."""
        return max(self.deadline_at, self.word_until or self.deadline_at)


@dataclass(frozen=True)
class StepFacts:
    """All that the next action on a step depends on, but for its contract and policy.

    Attributes:
        lease_until: until when somebody may act on it; None when nobody does.
        attempts_allowed: number of attempts after which a person is asked; a human retry raises it.
        next_at: not before; None for at once.
    """

    status: StepStatus
    lease_until: datetime | None = None
    attempts: Sequence[AttemptFacts] = ()
    attempts_allowed: int = 1
    inspection_count: int = 0
    next_at: datetime | None = None
    committed_at: datetime | None = None

    @property
    def unresolved(self) -> list[AttemptFacts]:
        """The attempts that are not proved to have had no effect; one that is known to have taken effect is among them.

        A step with such an attempt cannot have failed, whatever became of its other attempts.
        """
        return [attempt for attempt in self.attempts if attempt.applied is not False]


@dataclass(frozen=True)
class Prepare:
    """Resolve the arguments, fix the key, write ahead."""


@dataclass(frozen=True)
class Start:
    """Execute, with the stored key."""


@dataclass(frozen=True)
class Inspect:
    """Look the effect up."""


@dataclass(frozen=True)
class Verify:
    """Read the outcome by another path."""


@dataclass(frozen=True)
class ConcludeFailed:
    """Every attempt is proved not to have taken effect."""

    why: str


@dataclass(frozen=True)
class ConcludeCommitted:
    """The effect took place."""


@dataclass(frozen=True)
class Ask:
    """Open a case."""

    reason: CaseReason


@dataclass(frozen=True)
class Wait:
    """Nothing before that time; then decide again."""

    until: datetime


@dataclass(frozen=True)
class Nothing:
    """Nothing for the machine: it is done, or a person is asked."""


@dataclass(frozen=True)
class ConcludeVerified:
    """Nothing can be read beyond the receipt: the step ends with what is known."""


Action = Prepare | Start | Inspect | Verify | ConcludeVerified | ConcludeFailed | Ask | Wait | Nothing
