"""Putting a case aside for a while. It stays open and counted, and comes back by itself (S36)."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals.casework import case_work
from approvals.casework.case_work import said
from approvals.models import Snooze
from approvals.notifying import notice_timers
from checkpoint.clock import Now
from checkpoint.errors import ActionIncomplete, AlreadySnoozed
from checkpoint.models import Case
from checkpoint.transactions import one_transaction

SHORTEST = timedelta(minutes=1)


@one_transaction
def snooze(*, case_id: UUID, lasting: timedelta, person: User, channel: str, reason: str) -> Snooze:
    """Puts an open case aside until so much later by database time. Reminders and escalation wait as long.

    The same person repeating it gets the same snooze back.

    Raises:
        NotFound, Forbidden: as `case_work.begin`.
        CaseClosed: nothing waits any more.
        ActionIncomplete: no reason; a time under SHORTEST or over the setting CHECKPOINT_LONGEST_SNOOZE.
        AlreadySnoozed: somebody did already; the message says who and until when.
    """
    reason = case_work.checked_text("reason", reason, wanted="say what you wait for; others who look for it read it.")
    if not SHORTEST <= lasting <= settings.CHECKPOINT_LONGEST_SNOOZE:
        longest = settings.CHECKPOINT_LONGEST_SNOOZE // timedelta(hours=1)
        raise ActionIncomplete("hours", f"a snooze ends: at the soonest in a minute, at the latest in {longest} hours.")
    work = case_work.begin(case_id, person, channel, action="work on cases")
    case_work.require_open(work.case)
    earlier = current(work.case)
    if earlier is not None:
        if (earlier.person_id, earlier.reason) == (work.person.pk, reason):
            return earlier
        raise AlreadySnoozed(f"{earlier.person_name} snoozed it until {said(earlier.ends_at)}: {earlier.reason}")
    made = Snooze.objects.create(
        case=work.case,
        reason=reason,
        person=work.person,
        person_name=work.name,
        channel=work.channel,
        snoozed_at=work.now,
        ends_at=work.now + lasting,
    )
    notice_timers.postpone(work.case.pk, until=made.ends_at)
    work.note("snooze", after="snoozed", reason=reason, details={"until": made.ends_at.isoformat()})
    return made


@one_transaction
def wake(*, case_id: UUID, person: User, channel: str) -> Snooze | None:
    """Ends a snooze before its time, whoever began it; None, and no change, where none holds any more.

    Raises:
        NotFound, Forbidden: as `case_work.begin`.
        CaseClosed: it is over anyway.
    """
    work = case_work.begin(case_id, person, channel, action="work on cases")
    case_work.require_open(work.case)
    found = current(work.case)
    if found is None:
        return None
    found.woken_at, found.woken_by_name = work.now, work.name
    found.save(update_fields=["woken_at", "woken_by_name"])
    notice_timers.restore(work.case.pk, now=work.now)
    work.note("wake", before="snoozed", details={"until": found.ends_at.isoformat()})
    return found


def holding() -> QuerySet[Snooze]:
    """The snoozes that hold now: not over by database time, not woken, their case still open."""
    return Snooze.objects.filter(ends_at__gt=Now(), woken_at=None, case__status="open")


def current(case: Case) -> Snooze | None:
    """The snooze that holds on a case."""
    return holding().filter(case=case).first()
