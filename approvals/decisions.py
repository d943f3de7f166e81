"""A person answers a case: one transaction, and one function for every channel (S16).

Four beats: lock the workflow and the case, move the step, audit, and ring the doorbell after the commit. A refusal
changes nothing; a refused person is written to the system's audit stream in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from approvals import signatures, step_up
from approvals.casework import case_work
from approvals.models import Decision, Signature
from approvals.notifying import notices
from approvals.repetitions import recorded_before
from approvals.signatures import GivenAnswer
from approvals.step_up import UNKNOWN, Authentication
from checkpoint import doorbell, reasons, recovery, transitions
from checkpoint.canonical import string_problem
from checkpoint.errors import (
    AlreadyAnswered,
    CaseClosed,
    DecisionIncomplete,
    DecisionNotAllowed,
    Forbidden,
    NotFound,
    StaleView,
)
from checkpoint.models import Case
from checkpoint.rows import step_rows
from checkpoint.rows.step_rows import StepRow
from checkpoint.states import CASE_RULES, CaseReason, CaseStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes
from checkpoint.turns import human_tasks

REASON_LIMIT = 4000
OPERATION_ID_LIMIT = 255

Answered = Decision | Signature


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
    authentication: Authentication = UNKNOWN,
    data: Any = None,
    alongside: Callable[[Answered], None] = lambda answered: None,
) -> Answered:
    """Records a person's answer to a case, and carries it out unless the policy wants more people to give it.

    The same person repeating the same answer gets the same decision or signature back (S18).

    Args:
        person: whoever the session or token belongs to; never taken from the request's body (S14).
        step_version: the step's version that the person saw.
        arguments_hash: the hash of the arguments that the person saw.
        authentication: when the person last proved who they are; it counts where the policy wants a fresh proof.
        data: with the kind `answer`, what was put into the task's form, as JSON values.
        alongside: writes what belongs to a new answer, in its transaction; what it raises undoes both.

    Returns:
        The decision; or, where it waits for other people, this person's signature.

    Raises:
        NotFound: no such case, or none that this person may see.
        Forbidden: the person may see it but not decide, or the policy wants people of other groups.
        AuthenticateAgain: the policy wants the person to have authenticated again shortly before.
        DecisionIncomplete: no reason, a field is too long, or `data` is not what the task's form asks for.
        CaseClosed: it was answered or settled already; the message says by whom and how (S11, S19).
        StaleView: the step moved on since the person looked (S11, S12).
        DecisionNotAllowed: the case's reason, or the policy in force, does not allow this answer.
        AlreadySigned: the person gave another answer before, which still waits for other people.
        AlreadyAnswered: the person gave this answer before, with other words; the message says with which.
    """
    given = GivenAnswer(
        case_id, kind, person, channel, reason.strip(), operation_id.strip(), step_version, arguments_hash,
        authentication, data,
    )  # fmt: skip
    _check_complete(given)
    try:
        return _decide(given, alongside)
    except (Forbidden, NotFound) as refusal:
        denials.record(actor=given.actor, verb=f"decide {kind}", subject=f"case {case_id}", reason=str(refusal))
        raise


@one_transaction
def _decide(given: GivenAnswer, alongside: Callable[[Answered], None]) -> Answered:
    # The account is read again: one that was disabled or lost a right counts at once (S25).
    given = replace(given, person=User.objects.get(pk=given.person.pk))
    workflow_id = case_work.require_worker(given.case_id, given.person, action="decide cases")
    changes = transitions.lock([workflow_id], actor=given.actor)
    case = Case.objects.select_for_update().get(pk=given.case_id)
    if case.status != CaseStatus.OPEN:
        return _earlier_answer(case, given)
    row = step_rows.of_ids([case.step_id])[case.step_id]
    _check_guards(case, row, given)
    waits, signed = signatures.missing(case, given.kind, given.person), signatures.on(case)
    own = signatures.of_person(signed, given.person)
    if waits and own is not None:
        return _repeated(own, given)
    known = _authenticated(case, given, changes)
    if waits:
        answered: Answered = signatures.sign(changes, case, given, known)
        groups = signatures.rule_for(signatures.rules_of(case), given.kind).groups
        notices.tell_cosigners(case.pk, groups=groups, at=changes.now)
    else:
        answered = _carry_out(changes, case, row, given, signed, known)
    changes.finish()
    alongside(answered)
    doorbell.ring_on_commit()
    return answered


def _authenticated(case: Case, given: GivenAnswer, changes: Changes) -> Mapping[str, str]:
    """What the audit keeps of the person's authentication, where the policy wants a fresh one."""
    return step_up.require(given.authentication, changes.now) if signatures.wants_step_up(case) else {}


def _carry_out(
    changes: Changes,
    case: Case,
    row: StepRow,
    given: GivenAnswer,
    signed: Sequence[Signature],
    known: Mapping[str, str],
) -> Decision:
    """The answer of the last person who was needed. An operation id that an earlier one found is not lost."""
    agreed = [signature for signature in signed if signature.kind == given.kind]
    found = [signature.operation_id for signature in agreed if signature.operation_id]
    given = replace(given, operation_id=given.operation_id or (found or [""])[-1])
    recovery.apply(changes, case, row, recovery.Answer(given.kind, given.reason, given.operation_id, given.data))
    details = {"signed_by": [signature.person_name for signature in agreed], **known}
    decision = _record(changes, case, given, details)
    notices.tell_of_decision(decision)
    return decision


def _earlier_answer(case: Case, given: GivenAnswer) -> Answered:
    """What this person answered before, where it is the same; it may be the first of the signatures that decided."""
    decision = Decision.objects.filter(case=case, kind=given.kind).first()
    if decision is not None and decision.person_id == given.person.pk:
        return _repeated(decision, given)
    own = Signature.objects.filter(case=case, kind=given.kind, person=given.person).last()
    if decision is not None and own is not None:
        return _repeated(own, given)
    raise CaseClosed(case_work.how_it_closed(case))


def _repeated(earlier: Answered, given: GivenAnswer) -> Answered:
    """The answer that was given before, where the repetition says nothing that it does not. Raises AlreadyAnswered."""
    same_words = given.reason == earlier.reason and given.operation_id in ("", earlier.operation_id)
    if same_words and human_tasks.is_kept(Case.objects.get(pk=given.case_id), given.data):
        return earlier
    at = earlier.decided_at if isinstance(earlier, Decision) else earlier.signed_at
    raise AlreadyAnswered(recorded_before(earlier.kind, at, earlier.reason))


def _check_complete(request: GivenAnswer) -> None:
    wanted = "say in a sentence why; it is kept in the audit trail."
    if found := reasons.problem(request.reason, wanted=wanted, limit=REASON_LIMIT):
        raise DecisionIncomplete(f"reason: {found}")
    if len(request.operation_id) > OPERATION_ID_LIMIT:
        raise DecisionIncomplete(f"operation_id: at most {OPERATION_ID_LIMIT} characters.")
    if found := string_problem(request.operation_id):
        raise DecisionIncomplete(f"operation_id: {found}.")


def _check_guards(case: Case, row: StepRow, request: GivenAnswer) -> None:
    legal = CASE_RULES[CaseReason(case.reason)].decisions
    if request.kind not in legal:
        raise DecisionNotAllowed(f"This case can be answered with {', '.join(legal)}; not with {request.kind}.")
    if (request.step_version, request.arguments_hash) != (row.version, row.arguments_hash):
        raise StaleView("The step moved on since you looked. Load the case again and decide on what it shows now.")


def _record(changes: Changes, case: Case, request: GivenAnswer, details: dict[str, Any]) -> Decision:
    case.decide()
    case.closed_at = changes.now
    case.save(update_fields=["status", "closed_at"])
    changes.note_workflow(
        case.workflow_id,
        "decide",
        before=case.reason,
        after=request.kind.value,
        reason=request.reason,
        details={"case": str(case.pk), "operation_id": request.operation_id, **details},
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
