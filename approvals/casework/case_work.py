"""What every verb on a case begins and ends with: who may, the lock, the time, and the audit.

One right covers it all: whoever may decide a case may also look after it. Nothing here moves a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from approvals.permissions import DECIDE_CASE
from approvals.queries import cases_visible_to
from checkpoint import audit, clock, reasons
from checkpoint.errors import ActionIncomplete, CaseClosed, NotFound
from checkpoint.models import Case
from checkpoint.people import Actor
from checkpoint.permissions import require
from checkpoint.rows import workflow_rows
from checkpoint.states import CaseStatus
from checkpoint.transactions import require_transaction

TEXT_LIMIT = 4000


@dataclass(frozen=True)
class CaseWork:
    """A locked case, the person who acts on it, and when.

    Attributes:
        person: the account as it is now: one that was disabled or lost a right counts at once (S25).
        now: database time, read after the lock.
    """

    case: Case
    person: User
    channel: str
    now: datetime

    @property
    def name(self) -> str:
        """The person's name, kept as text so that the record outlives the account."""
        return self.person.get_username()

    def note(self, verb: str, *, reason: str = "", **content: Any) -> None:
        """Writes an audit entry about the case, in the workflow's stream."""
        entry = audit.Entry(
            stream=self.case.workflow_id,
            actor=Actor(self.name, self.channel),
            verb=verb,
            subject=f"case {self.case.pk}",
            reason=reason,
            **content,
        )
        audit.append([entry], at=self.now)


def begin(case_id: UUID, person: User, channel: str, *, action: str) -> CaseWork:
    """Locks the workflow and the case for a person who may work on it. `action` completes "you may not …".

    The workflow's lock keeps the times of its audit stream in order, and is the one that every decision takes first.

    Raises:
        NotFound: no such case, or none that this person may see.
        Forbidden: the person may see it but not work on it.
    """
    require_transaction()
    person = User.objects.get(pk=person.pk)
    workflow_rows.lock([require_worker(case_id, person, action=action)])
    case = Case.objects.select_for_update().get(pk=case_id)
    return CaseWork(case, person, channel, clock.now())


def require_worker(case_id: UUID, person: User, *, action: str) -> UUID:
    """Id of the case's workflow, for a person who may work on the case. Raises as `begin`."""
    workflow_id = cases_visible_to(person).filter(pk=case_id).values_list("workflow_id", flat=True).first()
    if workflow_id is None:
        raise NotFound(f"There is no case {case_id} that you may see.")
    require(person, DECIDE_CASE, action=action)
    return workflow_id


def require_open(case: Case) -> None:
    """Raises CaseClosed, with who answered what, unless the question is still open."""
    if case.status != CaseStatus.OPEN:
        raise CaseClosed(how_it_closed(case))


def how_it_closed(case: Case) -> str:
    """Who answered a closed case, when and what; or how it was settled without anybody."""
    decision = getattr(case, "decision", None)
    if decision is None:
        return f"Nobody needs to answer any more: {case.closing}."
    return f"{decision.person_name} already decided “{decision.kind}” at {said(decision.decided_at)}: {decision.reason}"


def said(at: datetime) -> str:
    """A time in a sentence."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def checked_text(field: str, text: str, *, wanted: str, limit: int = TEXT_LIMIT) -> str:
    """The text without blanks around it.

    Raises:
        ActionIncomplete: it says nothing, is too long or cannot be stored; `wanted` says what belongs there.
    """
    text = text.strip()
    if found := reasons.problem(text, wanted=wanted, limit=limit):
        raise ActionIncomplete(field, found)
    return text
