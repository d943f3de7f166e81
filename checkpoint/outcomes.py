"""What one call can answer. A hand returns exactly one of these; the journal records it.

Anything else that a tool does (an exception, a timeout, a lost connection) leaves the outcome unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Facts = dict[str, Any]

# The code of a refusal because bytes that the step needs are gone or damaged.
ARTIFACT_MISMATCH = "artifact_mismatch"


class NotApplied(Exception):
    """Raised by a tool only when the provider said that nothing happened, or nothing was ever sent.

    It speaks of its own attempt alone (DESIGN.md section 3).

    Attributes:
        code: short machine word, for instance "refused" or "deadline_before_send".
        retry_after: seconds the provider asked to wait, if it did.
        permanent: trying again with the same arguments cannot succeed.
    """

    def __init__(
        self, message: str, *, code: str = "refused", retry_after: float | None = None, permanent: bool = False
    ) -> None:
        self.code = code
        self.retry_after = retry_after
        self.permanent = permanent
        super().__init__(message)


class Unanswered(Exception):
    """Raised by a tool that can say in a sentence why it does not know whether the effect took place."""


@dataclass(frozen=True)
class Receipt:
    """What the tool returned: the effect took place.

    Attributes:
        operation_id: the provider's own id of the effect, if it gives one.
        facts: the facts worth keeping; JSON values, at most 16 KiB canonical.
        arguments_match: False when a lookup found an effect under this key made with other arguments.
        reading: what an agent that made the call itself then read of the outcome; None where it read nothing.
    """

    operation_id: str | None = None
    facts: Facts = field(default_factory=dict)
    arguments_match: bool = True
    reading: Facts | None = None


@dataclass(frozen=True)
class Refused:
    """The attempt is proved not to have taken effect. The recorded form of `NotApplied`."""

    message: str
    code: str = "refused"
    retry_after: float | None = None
    permanent: bool = False


@dataclass(frozen=True)
class OutcomeUnknown:
    """The call ended without saying whether the effect took place."""

    message: str


@dataclass(frozen=True)
class Found:
    """Inspection: the effect exists."""

    receipt: Receipt


@dataclass(frozen=True)
class Absent:
    """Inspection: the provider knows no such effect now. Counts only after the settle time."""

    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """Inspection: the provider is still working on it."""

    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Inconclusive:
    """Inspection: the lookup failed or cannot tell."""

    message: str


@dataclass(frozen=True)
class Visible:
    """Verification: the intended outcome can be read where it should be."""

    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class NotVisible:
    """Verification: the outcome cannot be read (yet), or reading failed."""

    message: str
    facts: Facts = field(default_factory=dict)


Execution = Receipt | Refused | OutcomeUnknown
Inspection = Found | Absent | Pending | Inconclusive
Verification = Visible | NotVisible
Outcome = Execution | Inspection | Verification
