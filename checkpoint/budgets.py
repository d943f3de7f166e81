"""How patient the machine is before it asks a person: tries, waits and deadlines. Plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import timedelta


@dataclass(frozen=True)
class Policy:
    """How patient the machine is before it asks a person. Times are seconds.

    Attributes:
        max_attempts: executions of one step before a person is asked.
        retry_base: the longest wait before the second attempt; it doubles each time up to `retry_cap`.
        retry_deadline: how long after the first attempt the step may be tried again. It counts anew, as the attempts
            do, from the first attempt after a person said to try again.
        max_inspections: inspections after one attempt that may tell nothing before a person is asked; while the
            request can still land, nobody is asked, and there is one more once it cannot.
        verification_deadline: how long an outcome may stay invisible after the effect was committed.
        agent_deadline: how long a workflow waits for its agent before a person is asked, where it does not say itself.
    """

    max_attempts: int = 3
    retry_base: float = 1.0
    retry_cap: float = 60.0
    retry_deadline: float = 86_400.0
    max_inspections: int = 5
    inspection_base: float = 0.5
    inspection_cap: float = 30.0
    verification_base: float = 0.5
    verification_cap: float = 15.0
    verification_deadline: float = 60.0
    agent_deadline: float = 86_400.0

    def __post_init__(self) -> None:
        numbers = {one.name: getattr(self, one.name) for one in fields(self)}
        if not all(map(math.isfinite, numbers.values())) or min(numbers.values()) < 0:
            raise ValueError("every number of a policy must be finite and at least 0")
        if 0 in (value for name, value in numbers.items() if name.endswith(("_base", "_cap", "max_attempts"))):
            raise ValueError("waits and attempts of a policy must be above 0, or the machine would spin")

    def retry_wait(self, attempts: int, share: float) -> timedelta:
        """Wait after the given number of attempts: full jitter, which keeps a thousand refused steps from coming back
        in one moment ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015).

        Args:
            share: of the longest wait, above 0 and at most 1; see `jitter.share_of`.
        """
        return max(_backoff(self.retry_base, self.retry_cap, attempts) * share, timedelta(milliseconds=1))

    def inspection_wait(self, inspections: int) -> timedelta:
        """Wait after the given number of inspections."""
        return _backoff(self.inspection_base, self.inspection_cap, inspections)

    def verification_wait(self, verifications: int) -> timedelta:
        """Wait after the given number of verifications."""
        return _backoff(self.verification_base, self.verification_cap, verifications)


def _backoff(base: float, cap: float, times: int) -> timedelta:
    return timedelta(seconds=min(cap, base * 2.0 ** min(max(times - 1, 0), 30)))
