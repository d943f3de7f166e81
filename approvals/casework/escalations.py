"""Telling those on call of a case: by a person who gives a reason, or by the timer when nobody answered. Once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User

from approvals.casework import case_work
from approvals.casework.case_work import said
from approvals.models import Escalation
from approvals.notifying import notices
from checkpoint import audit
from checkpoint.errors import AlreadyEscalated
from checkpoint.models import Case
from checkpoint.people import ENGINE
from checkpoint.rows import workflow_rows
from checkpoint.states import CaseStatus
from checkpoint.transactions import one_transaction, require_transaction

UNANSWERED = "nobody answered in time"


@one_transaction
def escalate(*, case_id: UUID, person: User, channel: str, reason: str) -> Escalation:
    """Tells everybody on call who may see the case, in the transaction that records it.

    The same person repeating it gets the same escalation back.

    Raises:
        NotFound, Forbidden: as `case_work.begin`.
        CaseClosed: it is answered.
        ActionIncomplete: no reason.
        AlreadyEscalated: they were told already; the message says by whom, when and why.
    """
    reason = case_work.checked_text("reason", reason, wanted="say why it cannot wait; those on call read it.")
    work = case_work.begin(case_id, person, channel, action="escalate cases")
    case_work.require_open(work.case)
    earlier = Escalation.objects.filter(case=work.case).first()
    if earlier is not None:
        if earlier.person_id == work.person.pk:
            return earlier
        raise AlreadyEscalated(f"{earlier.person_name} escalated it at {said(earlier.escalated_at)}: {earlier.reason}")
    made = Escalation.objects.create(
        case=work.case,
        reason=reason,
        person=work.person,
        person_name=work.name,
        channel=work.channel,
        escalated_at=work.now,
    )
    notices.CASES.escalate([work.case.pk], at=work.now)
    work.note("escalate", after="escalated", reason=reason)
    return made


def record_unanswered(case_ids: Sequence[UUID], *, at: datetime) -> None:
    """Records that the timer tells those on call, for each open case of which nobody has told them yet."""
    require_transaction()
    workflow_rows.lock(Case.objects.filter(pk__in=case_ids).values_list("workflow_id", flat=True))
    found = list(Case.objects.filter(pk__in=case_ids, status=CaseStatus.OPEN, escalation=None).only("pk", "workflow"))
    Escalation.objects.bulk_create(_unanswered(case, at) for case in found)
    audit.append([_entry(case) for case in found], at=at)


def _unanswered(case: Case, at: datetime) -> Escalation:
    return Escalation(
        case=case, reason=UNANSWERED, person_name=ENGINE.name, channel=ENGINE.channel, escalated_at=at
    )  # fmt: skip


def _entry(case: Case) -> audit.Entry:
    return audit.Entry(
        case.workflow_id, ENGINE, "escalate", f"case {case.pk}", after="escalated", reason=UNANSWERED
    )  # fmt: skip
