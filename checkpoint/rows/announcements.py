"""Tells, inside the transaction, what a verb has just opened and ended; whoever connects writes in the same commit.

So nobody can hear of a change that was rolled back, and no change is committed that nobody could hear of: what a
receiver raises undoes the verb. Receivers only write rows; whatever leaves this system does so after the commit.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime

from django.dispatch import Signal


@dataclass(frozen=True)
class Announcement:
    """What one verb changed that people may want to hear of.

    Attributes:
        opened_cases: ids of the cases that it opened.
        ended_workflows: ids of the workflows that it ended, of those that an account submitted.
        at: the verb's database time.
        requested_approvals: ids of the requests for approval that it made, each by the row that is asked about.
    """

    opened_cases: list[uuid.UUID]
    ended_workflows: list[uuid.UUID]
    at: datetime
    requested_approvals: list[uuid.UUID] = field(default_factory=list)


announced = Signal()


def announce(announcement: Announcement) -> None:
    """Tells everybody who connected. On the hot path: says nothing where there is nothing to say."""
    if announcement.opened_cases or announcement.ended_workflows or announcement.requested_approvals:
        announced.send(sender=None, announcement=announcement)
