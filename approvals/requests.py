"""A person answers a request for approval: one transaction, and one function for every channel.

Approving changes the approval and wakes the step; the engine starts it, and only then is the approval used up. So two
clicks while the effect is slow change nothing (S18), and of two people who press at once one counts (S19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User

from approvals import permits, signatures, step_up
from approvals.locked_requests import LockedRequest, complete_reason, end_step, how_it_ended, lock
from approvals.models import Decision
from approvals.notifying import notices
from approvals.permissions import DECIDE_APPROVAL
from approvals.repetitions import recorded_before
from approvals.step_up import UNKNOWN, Authentication
from checkpoint import doorbell
from checkpoint.errors import AlreadyAnswered, ApprovalClosed, DecisionNotAllowed, Forbidden, StaleView
from checkpoint.gates import step_rulings
from checkpoint.gates.rulings import ApprovalRule, StepDescription
from checkpoint.models import Approval
from checkpoint.people import Actor
from checkpoint.permissions import Person
from checkpoint.rows import step_rows
from checkpoint.states import ApprovalStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes

_KINDS = (DecisionKind.APPROVE, DecisionKind.REJECT, DecisionKind.REQUEST_CHANGES)


@dataclass(frozen=True)
class _Answer:
    """What a person answers, and what that person saw."""

    approval_id: UUID
    kind: DecisionKind
    person: User
    channel: str
    reason: str
    arguments_hash: str
    authentication: Authentication
    alongside: Callable[[Decision], None]

    @property
    def actor(self) -> Actor:
        return Actor(name=self.person.get_username(), channel=self.channel)


def answer(
    *,
    approval_id: UUID,
    kind: DecisionKind,
    person: User,
    channel: str,
    reason: str,
    arguments_hash: str,
    authentication: Authentication = UNKNOWN,
    alongside: Callable[[Decision], None] = lambda decision: None,
) -> Decision:
    """Records one person's answer, and opens or closes the gate when it is the deciding one.

    Args:
        kind: approve, reject or request_changes. Of the last two one is enough; the last sends the steps back to the
            agent, and nothing of them runs until it has changed one.
        arguments_hash: the hash of the arguments that the person was shown (S15).
        authentication: when the person last proved who they are; it counts where the policy wants a fresh proof.
        alongside: writes what belongs to the decision, in its transaction; what it raises undoes both. It is not called
            for an answer that was given before.

    Raises:
        NotFound: no such approval, or none that this person may see.
        Forbidden: this person may see it but not answer it (`permits.refusal`).
        AuthenticateAgain: the policy wants the person to have authenticated again shortly before.
        DecisionIncomplete: no reason, or it is too long.
        AlreadyAnswered: the person gave this answer before, with other words; the message says with which.
        ApprovalClosed: it was answered, used, withdrawn or ran out already (S11, S13, S19).
        StaleView: the arguments are not those that the person was shown.
        DecisionNotAllowed: another kind; or changes are asked for of what was sent already.
    """
    given = _Answer(approval_id, kind, person, channel, reason.strip(), arguments_hash, authentication, alongside)
    _check_complete(given)
    try:
        return _answer(given)
    except Forbidden as refusal:
        denials.record(actor=given.actor, verb=f"{kind}", subject=f"approval {approval_id}", reason=str(refusal))
        raise


@one_transaction
def _answer(given: _Answer) -> Decision:
    person = User.objects.get(pk=given.person.pk)
    changes, request = lock(given.approval_id, person, given.actor)
    approval = request.asked_about
    if earlier := _earlier(approval, given):
        return earlier
    rule = ApprovalRule.from_json(approval.rule)
    _check_open(approval, changes)
    if refusal := refusal_of(approval, person):
        raise Forbidden(refusal)
    if approval.shown_hash != given.arguments_hash:
        raise StaleView("The arguments are not those that you were shown. Load the request again and decide on those.")
    decision = _record(changes, approval, given, _authenticated(changes, request, given))
    if given.kind is DecisionKind.REJECT:
        _reject(changes, request, given)
    elif given.kind is DecisionKind.REQUEST_CHANGES:
        _send_back(changes, request, given)
    elif approval.decisions.filter(kind=DecisionKind.APPROVE).count() >= rule.needed:
        _approve(changes, request, rule)
    changes.finish()
    if approval.status != ApprovalStatus.PENDING:
        notices.tell_of_decision(decision)
    else:
        notices.tell_further_approvers(approval.pk, at=changes.now)
    given.alongside(decision)
    doorbell.ring_on_commit()
    return decision


def _earlier(approval: Approval, given: _Answer) -> Decision | None:
    """The same answer of the same person, if there is one. Raises AlreadyAnswered where its words were others."""
    earlier = Decision.objects.filter(approval=approval, person=given.person, kind=given.kind).first()
    if earlier is not None and earlier.reason != given.reason:
        raise AlreadyAnswered(recorded_before(earlier.kind, earlier.decided_at, earlier.reason))
    return earlier


def _check_complete(given: _Answer) -> None:
    if given.kind not in _KINDS:
        raise DecisionNotAllowed(f"A request for approval is answered with {', '.join(_KINDS)}.")
    complete_reason(given.reason)


def _authenticated(changes: Changes, request: LockedRequest, given: _Answer) -> Mapping[str, str]:
    """What the audit keeps of the person's authentication, where the policy in force wants a fresh one."""
    if not step_up.wanted(signatures.in_force(), _steps(changes, request)):
        return {}
    return step_up.require(given.authentication, changes.now)


def _steps(changes: Changes, request: LockedRequest) -> Iterator[StepDescription]:
    for row in step_rows.of_ids(share.step_id for share in request.shares).values():
        yield step_rulings.describe(changes.workflows[row.workflow_id], row)


def _check_open(approval: Approval, changes: Changes) -> None:
    if approval.status != ApprovalStatus.PENDING:
        raise ApprovalClosed(how_it_ended(approval))
    if changes.now >= approval.expires_at:
        raise ApprovalClosed(f"Its time was over at {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC; nothing was started.")


def refusal_of(approval: Approval, person: Person) -> str:
    """Why this person may not answer, as a sentence; empty where the person may. For every channel (S16)."""
    voter = permits.Voter(
        has_right=person.has_perm(DECIDE_APPROVAL),
        groups=set(person.groups.values_list("name", flat=True)),
        requester=approval.workflow.submitted_by_id == person.pk,
        answered=approval.decisions.filter(person=person.pk).exists(),
    )
    return permits.refusal(ApprovalRule.from_json(approval.rule), voter)


def _record(changes: Changes, approval: Approval, given: _Answer, known: Mapping[str, str]) -> Decision:
    changes.note_workflow(
        approval.workflow_id,
        given.kind.value,
        before=approval.status,
        reason=given.reason,
        details={"approval": str(approval.pk), "arguments_hash": approval.shown_hash, **known},
    )
    return Decision.objects.create(
        approval=approval,
        kind=given.kind.value,
        reason=given.reason,
        person=given.person,
        person_name=given.person.get_username(),
        channel=given.channel,
        step_version=approval.step.version,
        arguments_hash=given.arguments_hash,
        decided_at=changes.now,
    )


def _approve(changes: Changes, request: LockedRequest, rule: ApprovalRule) -> None:
    usable_from = changes.now + timedelta(seconds=rule.wait_seconds) if rule.wait_seconds else None
    for share in request.shares:
        share.approve()
        share.usable_from = usable_from
    Approval.objects.bulk_update(request.shares, ["status", "usable_from"])
    for row in step_rows.of_ids(share.step_id for share in request.shares).values():
        if row.next_at is not None:
            changes.touch(row).next_at = usable_from
        if row.id == request.asked_about.step_id:
            changes.note(row, "open_gate", details={"approval": str(request.asked_about.pk)})


def _reject(changes: Changes, request: LockedRequest, given: _Answer) -> None:
    step = request.unsent_steps[0]
    for share in request.shares:
        share.reject()
        share.closed_at = changes.now
    Approval.objects.bulk_update(request.shares, ["status", "closed_at"])
    end_step(changes, step, f"{given.actor.name} rejected it: {given.reason}")


def _send_back(changes: Changes, request: LockedRequest, given: _Answer) -> None:
    if any(share.step.attempt_count for share in request.shares):
        raise DecisionNotAllowed("A call with these arguments was sent already: approve or reject sending it again.")
    for share in request.shares:
        share.send_back()
        share.closing = f"{given.actor.name} asks for changes: {given.reason}"
    Approval.objects.bulk_update(request.shares, ["status", "closing"])
    for row in step_rows.of_ids(share.step_id for share in request.shares).values():
        changes.note(row, "send_back", reason=given.reason, details={"approval": str(request.asked_about.pk)})
