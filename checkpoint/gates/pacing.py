"""How often something may happen: the generic cell rate algorithm (ITU-T I.371), pure functions. Plain Python.

All that has to be kept is one time, `paced_to`: until when what was let through has used the rate up. In any span of t
seconds no more than `burst` + t · rate things are let through.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

# Without a burst of its own, a rate lets this much of it through at once: workers look for work once a second.
DEFAULT_BURST = timedelta(seconds=2)


@dataclass(frozen=True)
class Rate:
    """So many a minute (above 0), and so many at once after a pause (at least 1)."""

    per_minute: float
    burst: int

    @classmethod
    def of(cls, per_minute: float, burst: int | None) -> Rate:
        """With the burst that is usual for the rate, where none is given."""
        usual = math.ceil(per_minute * (DEFAULT_BURST / timedelta(minutes=1)))
        return cls(per_minute, burst or max(usual, 1))

    @property
    def interval(self) -> timedelta:
        """Between two things where nothing was saved up."""
        return timedelta(minutes=1 / self.per_minute)

    def free_at(self, paced_to: datetime | None, now: datetime) -> datetime:
        """From when on the next thing is let through; not after `now` where it is let through at once."""
        return now if paced_to is None else paced_to - (self.burst - 1) * self.interval

    def after_one(self, paced_to: datetime | None, now: datetime) -> datetime:
        """The new `paced_to`, once a thing was let through now."""
        return max(paced_to or now, now) + self.interval
