"""Step-up: where the policy wants it, whoever answers has authenticated again shortly before.

As with four eyes the policy in force at the time of the answer says so. The verb that records an answer checks it, for
every channel (S16). A channel that cannot say when a person authenticated (a token, a link in a mail) is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from checkpoint.errors import AuthenticateAgain, DecisionNotAllowed, RecordDamaged
from checkpoint.gates.rulings import StepDescription
from checkpoint.turns import pinned

# A bulk job goes on with the authentication of its start for no longer than this: what it comes to then is refused.
LONGEST_CARRIED = timedelta(hours=4)


@dataclass(frozen=True)
class Authentication:
    """How fresh a person's proof of who they are is.

    Attributes:
        at: when they signed in or gave their password again; None where the channel cannot know.
        answered_at: when they gave their answer, where that is not now: a bulk job gives those of its start.
    """

    at: datetime | None = None
    answered_at: datetime | None = None

    def is_recent(self, now: datetime) -> bool:
        """Whether it counts for an answer under a rule with `step_up`."""
        answered_at = self.answered_at or now
        recent = self.at is not None and answered_at - self.at <= settings.CHECKPOINT_STEP_UP_WITHIN
        return recent and now - answered_at <= LONGEST_CARRIED


UNKNOWN = Authentication()


def wanted(policy_version_id: UUID, steps: Iterable[StepDescription]) -> bool:
    """Whether the policy wants whoever answers about one of these steps to have authenticated again.

    Raises:
        DecisionNotAllowed: the policy cannot be read. Then nobody answers, rather than anybody.
    """
    if not pinned.has_rules(policy_version_id):
        return False
    try:
        return any(pinned.ruling(policy_version_id, step).step_up for step in steps)
    except RecordDamaged as damaged:
        raise DecisionNotAllowed(f"{damaged}. Until an administrator puts another in force, none answers.") from damaged


def require(authentication: Authentication, now: datetime) -> dict[str, str]:
    """What the audit keeps of an authentication that is recent enough. Raises AuthenticateAgain for any other."""
    if authentication.at is None or not authentication.is_recent(now):
        raise AuthenticateAgain(refusal())
    return {"authenticated_at": authentication.at.isoformat()}


def refusal() -> str:
    """What a person is told who has to authenticate again."""
    minutes = settings.CHECKPOINT_STEP_UP_WITHIN.total_seconds() / 60
    return (
        f"The policy wants whoever answers this to have entered their password within the last {minutes:g} minutes."
        " Enter it again."
    )
