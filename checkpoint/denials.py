"""Refused people, in the system's audit stream: a transaction of its own that changes no workflow's version."""

from __future__ import annotations

from checkpoint import audit, clock
from checkpoint.people import Actor
from checkpoint.transactions import one_transaction


@one_transaction
def record(*, actor: Actor, verb: str, subject: str, reason: str) -> None:
    """Writes down that the actor was refused."""
    audit.open_streams([(audit.SYSTEM_STREAM, "system")])
    entry = audit.Entry(audit.SYSTEM_STREAM, actor, "deny", subject, reason=reason, details={"wanted": verb})
    audit.append([entry], at=clock.now())
