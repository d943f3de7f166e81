"""Refused people, in the system's audit stream: a transaction of its own that changes no workflow's version.

Recorded exactly once for each request or command: a verb that refuses writes it, and the edge writes what no verb did.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from checkpoint import audit, clock, occasions
from checkpoint.models import AuditEntry
from checkpoint.people import ANONYMOUS, ENGINE_CHANNEL, Actor
from checkpoint.transactions import one_transaction

# Whoever has no account could fill a table of which nothing can ever be deleted. The rest is in the web server's log.
ANONYMOUS_PER_MINUTE = 60


@one_transaction
def record(*, actor: Actor, verb: str, subject: str, reason: str, **details: Any) -> None:
    """Writes down that the actor was refused; of the anonymous, ANONYMOUS_PER_MINUTE at most.

    Args:
        verb: what the actor wanted to do.
        details: further JSON values.
    """
    occasions.current().denied = True
    now = clock.now()
    details["wanted"] = verb
    if actor.name == ANONYMOUS:
        before = _anonymous_of_last_minute(now)
        if before >= ANONYMOUS_PER_MINUTE:
            return
        if before == ANONYMOUS_PER_MINUTE - 1:
            details["further"] = "not recorded within this minute"
    audit.append_to_system([audit.Entry(audit.SYSTEM_STREAM, actor, "deny", subject, reason=reason, details=details)])


def _anonymous_of_last_minute(now: datetime) -> int:
    recent = AuditEntry.objects.exclude(channel=ENGINE_CHANNEL).filter(
        actor=ANONYMOUS, at__gt=now - timedelta(minutes=1)
    )
    return recent.order_by()[:ANONYMOUS_PER_MINUTE].count()
