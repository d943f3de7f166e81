"""Reminders and escalations: timers in the database that go off once, and do nothing where the question is closed."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings

from approvals.casework import escalations
from approvals.notifying import notices
from approvals.notifying.notice_rules import NoticeKind
from checkpoint import clock
from checkpoint.rows import statements, workflow_rows
from checkpoint.transactions import one_transaction

AT_ONCE = 200

_DUE = """
SELECT id, kind, coalesce(case_id, approval_id) FROM approvals_noticetimer
WHERE fired_at IS NULL AND due_at <= (SELECT checkpoint_now()) ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
_WORKFLOWS = """
SELECT workflow_id FROM checkpoint_case WHERE id = ANY(%(events)s)
UNION SELECT workflow_id FROM checkpoint_approval WHERE id = ANY(%(events)s)
"""
# Read in a later statement than the one that took the locks: a decision may have been committed meanwhile.
_OPEN_CASES = "SELECT id FROM checkpoint_case WHERE id = ANY(%(events)s) AND status = 'open'"
_OPEN_APPROVALS = """
SELECT id FROM checkpoint_approval WHERE id = ANY(%(events)s) AND status = 'pending' AND expires_at > %(at)s
"""
_FIRED = "UPDATE approvals_noticetimer SET fired_at = %(at)s WHERE id = ANY(%(timers)s)"


@one_transaction
def fire() -> int:
    """Writes the notices of the timers that are due, AT_ONCE at most; returns how many timers that were."""
    due = statements.fetch(_DUE, limit=AT_ONCE)
    if not due:
        return 0
    # A notice refers to its workflow, and so waits for whoever holds it. Taken in order, and before any notice is
    # written, these locks wait for nobody who waits for us.
    workflow_rows.lock(row[0] for row in statements.fetch(_WORKFLOWS, events=[row[2] for row in due]))
    at = clock.now()
    for kind, tell in ((NoticeKind.REMINDER, _remind), (NoticeKind.ESCALATION, _escalate)):
        events: list[uuid.UUID] = [row[2] for row in due if row[1] == kind]
        cases = [row[0] for row in statements.fetch(_OPEN_CASES, events=events)]
        approvals = [row[0] for row in statements.fetch(_OPEN_APPROVALS, events=events, at=at)]
        tell(cases, approvals, at)
    statements.change(_FIRED, at=at, timers=[row[0] for row in due])
    return len(due)


def _remind(cases: list[uuid.UUID], approvals: list[uuid.UUID], at: datetime) -> None:
    notices.CASES.remind(cases, at=at)
    notices.APPROVALS.remind(approvals, at=at)


def _escalate(cases: list[uuid.UUID], approvals: list[uuid.UUID], at: datetime) -> None:
    escalations.record_unanswered(cases, at=at)
    notices.CASES.escalate(cases, at=at)
    notices.APPROVALS.escalate(approvals, at=at)


# Whoever fires timers holds them and then waits for workflows, and a snooze the other way round: so it does not wait.
# A timer that goes off this very moment goes off.
_WAITING = "SELECT id FROM approvals_noticetimer WHERE case_id = %(case)s AND fired_at IS NULL FOR UPDATE SKIP LOCKED"
_POSTPONE = f"""
UPDATE approvals_noticetimer SET due_at = greatest(due_at, %(until)s) WHERE id IN ({_WAITING})
"""
_RESTORE = f"""
UPDATE approvals_noticetimer AS timer SET due_at = greatest(%(now)s, question.opened_at + CASE
  WHEN timer.kind = 'escalation' THEN %(escalate_after)s::interval ELSE %(remind_after)s::interval END)
FROM checkpoint_case AS question WHERE question.id = timer.case_id AND timer.id IN ({_WAITING})
"""


def postpone(case_id: uuid.UUID, *, until: datetime) -> None:
    """While a case is put aside, nobody is reminded of it, and nothing is escalated."""
    statements.change(_POSTPONE, case=case_id, until=until)


def restore(case_id: uuid.UUID, *, now: datetime) -> None:
    """The case is looked at again: reminder and escalation come when they would have come, or now."""
    statements.change(
        _RESTORE,
        case=case_id,
        now=now,
        remind_after=settings.CHECKPOINT_REMIND_AFTER,
        escalate_after=settings.CHECKPOINT_ESCALATE_AFTER,
    )
