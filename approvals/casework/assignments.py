"""Who looks after a case: claim it, let it go, give it to somebody.

A courtesy, not a lock. It tells others that somebody is on it; deciding stays open to everybody who may.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals.casework import case_work
from approvals.casework.case_work import CaseWork, said
from approvals.models import Assignment
from approvals.notifying import notices
from approvals.permissions import DECIDE_CASE
from checkpoint.canonical import string_problem
from checkpoint.errors import ActionIncomplete, AlreadyAssigned, Forbidden
from checkpoint.models import Case, Team
from checkpoint.transactions import one_transaction


@one_transaction
def claim(*, case_id: UUID, person: User, channel: str) -> Assignment:
    """The person takes the case on. Of two who press at once one gets it, and the other is told who (S19).

    Whoever has it already gets the same assignment back.

    Raises:
        NotFound, Forbidden: as `case_work.begin`.
        CaseClosed: there is nothing to look after any more.
        AlreadyAssigned: somebody else has it; the message says who.
    """
    work = case_work.begin(case_id, person, channel, action="work on cases")
    case_work.require_open(work.case)
    held = current(work.case)
    if held is None:
        return _assign(work, work.person, reason="")
    if held.person_id != work.person.pk:
        raise AlreadyAssigned(f"{_who_has_it(held)} Ask them to release it, or assign it to yourself.")
    return held


@one_transaction
def release(*, case_id: UUID, person: User, channel: str) -> Assignment | None:
    """The person lets the case go; None, and no change, where nobody has it.

    Raises:
        NotFound, Forbidden: as `case_work.begin`; also where somebody else has it.
        CaseClosed: it is over anyway.
    """
    work = case_work.begin(case_id, person, channel, action="work on cases")
    case_work.require_open(work.case)
    held = current(work.case)
    if held is None:
        return None
    if held.person_id != work.person.pk:
        raise Forbidden(f"{_who_has_it(held)} Only {held.person_name} can release it; you can assign it to somebody.")
    _end(work, held)
    work.note("release", before=held.person_name)
    return held


@one_transaction
def assign(*, case_id: UUID, to: str, person: User, channel: str, reason: str, seen: UUID | None) -> Assignment:
    """The person gives the case to somebody of the team who may decide it, whoever had it before.

    Args:
        to: the account's name; one's own is a way to take over.
        seen: id of the assignment that the person saw in force; None where nobody had the case.

    Raises:
        NotFound, Forbidden: as `case_work.begin`.
        CaseClosed: there is nothing to look after any more.
        ActionIncomplete: no reason, or nobody of that name who may decide this case.
        AlreadyAssigned: somebody changed it since the person looked; the message says to whom.
    """
    reason = case_work.checked_text("reason", reason, wanted="say in a sentence why; whoever gets the case reads it.")
    work = case_work.begin(case_id, person, channel, action="work on cases")
    case_work.require_open(work.case)
    named = candidates(work.case.workflow.team).filter(username=to.strip())
    target = None if string_problem(to) else named.first()
    if target is None:
        raise ActionIncomplete("to", "choose somebody of the team who may decide cases.")
    held = current(work.case)
    if held is not None and held.person_id == target.pk:
        return held
    if seen != (held.pk if held else None):
        raise AlreadyAssigned(_who_has_it(held) if held else "It was released meanwhile; nobody has it now.")
    if held is not None:
        _end(work, held)
    return _assign(work, target, reason=reason, before=held)


def current(case: Case) -> Assignment | None:
    """Who has an open case; None for one that is closed, because it is over then."""
    return case.assignments.filter(ended_at=None, case__status="open").first()


def candidates(team: Team) -> QuerySet[User]:
    """The active members of a team who may decide its cases, by name."""
    return User.objects.with_perm(DECIDE_CASE).filter(teams=team).order_by("username")


def _who_has_it(held: Assignment) -> str:
    by = "" if held.is_claim else f", assigned by {held.assigned_by_name}"
    return f"{held.person_name} has this case since {said(held.assigned_at)}{by}."


def _assign(work: CaseWork, target: User, *, reason: str, before: Assignment | None = None) -> Assignment:
    made = Assignment.objects.create(
        case=work.case,
        person=target,
        person_name=target.get_username(),
        assigned_by_name=work.name,
        channel=work.channel,
        reason=reason,
        assigned_at=work.now,
    )
    verb = "claim" if made.is_claim else "assign"
    work.note(verb, before=before.person_name if before else "", after=made.person_name, reason=reason)
    if not made.is_claim:
        notices.tell_assignee(work.case.pk, to=target.pk, at=work.now)
    return made


def _end(work: CaseWork, held: Assignment) -> None:
    held.ended_at = work.now
    held.save(update_fields=["ended_at"])
