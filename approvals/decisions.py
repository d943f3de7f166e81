"""A person answers a case: one transaction, and one function for every channel (S16).

Four beats: lock the workflow and the case, move the step, audit, and ring the doorbell after the commit. A refusal
changes nothing; a refused person is written to the system's audit stream in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User

from approvals import notices
from approvals.models import Decision
from approvals.permissions import DECIDE_CASE
from approvals.queries import cases_visible_to
from checkpoint import denials, doorbell, recovery, step_rows, transitions
from checkpoint.errors import CaseClosed, DecisionIncomplete, DecisionNotAllowed, Forbidden, NotFound, StaleView
from checkpoint.models import Case
from checkpoint.people import Actor
from checkpoint.permissions import require
from checkpoint.states import CASE_RULES, CaseReason, CaseStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.step_rows import StepRow
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes

REASON_LIMIT = 4000
OPERATION_ID_LIMIT = 255


@dataclass(frozen=True)
class _Request:
    """What a person asks for, and what that person saw."""

    case_id: UUID
    kind: DecisionKind
    person: User
    channel: str
    reason: str
    operation_id: str
    step_version: int
    arguments_hash: str
    alongside: Callable[[Decision], None]

    @property
    def actor(self) -> Actor:
        return Actor(name=self.person.get_username(), channel=self.channel)


def decide(
    *,
    case_id: UUID,
    kind: DecisionKind,
    person: User,
    channel: str,
    reason: str,
    operation_id: str = "",
    step_version: int,
    arguments_hash: str,
    alongside: Callable[[Decision], None] = lambda decision: None,
) -> Decision:
    """Records a person's answer to a case and carries it out.

    The same person repeating the same answer gets the same decision back (S18).

    Args:
        person: whoever the session or token belongs to; never taken from the request's body (S14).
        step_version: the step's version that the person saw.
        arguments_hash: the hash of the arguments that the person saw.
        alongside: writes what belongs to the decision, in its transaction; what it raises undoes both. It is not called
            for an answer that was given before.

    Raises:
        NotFound: no such case, or none that this person may see.
        Forbidden: the person may see it but not decide.
        DecisionIncomplete: no reason, or a field is too long.
        CaseClosed: it was answered or settled already; the message says by whom and how (S11, S19).
        StaleView: the step moved on since the person looked (S11, S12).
        DecisionNotAllowed: the case's reason does not allow this answer.
    """
    request = _Request(
        case_id, kind, person, channel, reason.strip(), operation_id.strip(), step_version, arguments_hash, alongside
    )
    _check_complete(request)
    try:
        return _decide(request)
    except (Forbidden, NotFound) as refusal:
        denials.record(actor=request.actor, verb=f"decide {kind}", subject=f"case {case_id}", reason=str(refusal))
        raise


@one_transaction
def _decide(request: _Request) -> Decision:
    workflow_id = _visible_case(request).workflow_id
    changes = transitions.lock([workflow_id], actor=request.actor)
    case = Case.objects.select_for_update().get(pk=request.case_id)
    if case.status != CaseStatus.OPEN:
        return _earlier_answer(case, request)
    row = step_rows.of_ids([case.step_id])[case.step_id]
    _check_guards(case, row, request)
    recovery.apply(changes, case, row, recovery.Answer(request.kind, request.reason, request.operation_id))
    decision = _record(changes, case, request)
    changes.finish()
    notices.tell_of_decision(decision)
    request.alongside(decision)
    doorbell.ring_on_commit()
    return decision


def _visible_case(request: _Request) -> Case:
    """The account is read again: one that was disabled or lost a right counts at once (S25)."""
    person = User.objects.get(pk=request.person.pk)
    case = cases_visible_to(person).filter(pk=request.case_id).first()
    if case is None:
        raise NotFound(f"There is no case {request.case_id} that you may see.")
    require(person, DECIDE_CASE, action="decide cases")
    return case


def _earlier_answer(case: Case, request: _Request) -> Decision:
    decision = Decision.objects.filter(case=case).first()
    if decision is None:
        raise CaseClosed(f"Nobody needs to answer any more: {case.closing}.")
    if decision.person_id == request.person.pk and decision.kind == request.kind:
        return decision
    raise CaseClosed(
        f"{decision.person_name} already decided “{decision.kind}” at {decision.decided_at:%Y-%m-%d %H:%M:%S} UTC:"
        f" {decision.reason}"
    )


def _check_complete(request: _Request) -> None:
    if not request.reason:
        raise DecisionIncomplete("reason: say in a sentence why; it is kept in the audit trail.")
    if len(request.reason) > REASON_LIMIT:
        raise DecisionIncomplete(f"reason: at most {REASON_LIMIT} characters, this has {len(request.reason)}.")
    if len(request.operation_id) > OPERATION_ID_LIMIT:
        raise DecisionIncomplete(f"operation_id: at most {OPERATION_ID_LIMIT} characters.")
    if "\x00" in request.reason + request.operation_id:
        raise DecisionIncomplete("reason, operation_id: NUL characters cannot be stored; remove them.")


def _check_guards(case: Case, row: StepRow, request: _Request) -> None:
    legal = CASE_RULES[CaseReason(case.reason)].decisions
    if request.kind not in legal:
        raise DecisionNotAllowed(f"This case can be answered with {', '.join(legal)}; not with {request.kind}.")
    if (request.step_version, request.arguments_hash) != (row.version, row.arguments_hash):
        raise StaleView("The step moved on since you looked. Load the case again and decide on what it shows now.")


def _record(changes: Changes, case: Case, request: _Request) -> Decision:
    case.decide()
    case.closed_at = changes.now
    case.save(update_fields=["status", "closed_at"])
    changes.note_workflow(
        case.workflow_id,
        "decide",
        before=case.reason,
        after=request.kind.value,
        reason=request.reason,
        details={"case": str(case.pk), "operation_id": request.operation_id},
    )
    return Decision.objects.create(
        case=case,
        kind=request.kind.value,
        reason=request.reason,
        operation_id=request.operation_id,
        person=request.person,
        person_name=request.person.get_username(),
        channel=request.channel,
        step_version=request.step_version,
        arguments_hash=request.arguments_hash,
        decided_at=changes.now,
    )
