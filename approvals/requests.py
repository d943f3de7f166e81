"""A person answers a request for approval: one transaction, and one function for every channel.

Approving changes the approval and wakes the step; the engine starts it, and only then is the approval used up. So two
clicks while the effect is slow change nothing (S18), and of two people who press at once one counts (S19).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User

from approvals import permits
from approvals.models import Decision
from approvals.permissions import DECIDE_APPROVAL
from checkpoint import denials, doorbell, step_rows, transitions
from checkpoint.errors import ApprovalClosed, DecisionIncomplete, DecisionNotAllowed, Forbidden, NotFound, StaleView
from checkpoint.models import Approval
from checkpoint.people import Actor
from checkpoint.permissions import ADMINISTER_WORKFLOW, workflows_visible_to
from checkpoint.rulings import ApprovalRule
from checkpoint.states import ApprovalStatus, StepStatus
from checkpoint.states import Decision as DecisionKind
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes

REASON_LIMIT = 4000


@dataclass(frozen=True)
class _Answer:
    """What a person answers, and what that person saw."""

    approval_id: UUID
    kind: DecisionKind
    person: User
    channel: str
    reason: str
    arguments_hash: str
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
    alongside: Callable[[Decision], None] = lambda decision: None,
) -> Decision:
    """Records one person's answer, and opens or closes the gate when it is the deciding one.

    Args:
        kind: approve or reject. One rejection is enough.
        arguments_hash: the hash of the arguments that the person was shown (S15).
        alongside: writes what belongs to the decision, in its transaction; what it raises undoes both. It is not called
            for an answer that was given before.

    Raises:
        NotFound: no such approval, or none that this person may see.
        Forbidden: this person may see it but not answer it (`permits.refusal`).
        DecisionIncomplete: no reason, or it is too long.
        ApprovalClosed: it was answered, used, withdrawn or ran out already (S11, S13, S19).
        StaleView: the arguments are not those that the person was shown.
    """
    given = _Answer(approval_id, kind, person, channel, reason.strip(), arguments_hash, alongside)
    _check_complete(given)
    try:
        return _answer(given)
    except Forbidden as refusal:
        denials.record(actor=given.actor, verb=f"{kind}", subject=f"approval {approval_id}", reason=str(refusal))
        raise


@one_transaction
def _answer(given: _Answer) -> Decision:
    person = User.objects.get(pk=given.person.pk)
    changes, approval = _lock(given.approval_id, person, given.actor)
    earlier = Decision.objects.filter(approval=approval, person=person, kind=given.kind).first()
    if earlier is not None:
        return earlier
    rule = ApprovalRule.from_json(approval.rule)
    _check_open(approval, changes)
    _check_permitted(approval, rule, person)
    if approval.arguments_hash != given.arguments_hash:
        raise StaleView("The arguments are not those that you were shown. Load the request again and decide on those.")
    decision = _record(changes, approval, given)
    if given.kind is DecisionKind.REJECT:
        _reject(changes, approval, given)
    elif approval.decisions.filter(kind=DecisionKind.APPROVE).count() >= rule.needed:
        _approve(changes, approval, rule)
    changes.finish()
    given.alongside(decision)
    doorbell.ring_on_commit()
    return decision


@one_transaction
def withdraw(*, approval_id: UUID, person: User, channel: str, reason: str) -> Approval:
    """The requester or an administrator takes a request, or an unused approval, back; the step and what follows end.

    Raises:
        NotFound, Forbidden, ApprovalClosed: as for `answer`.
    """
    person = User.objects.get(pk=person.pk)
    changes, approval = _lock(approval_id, person, Actor(person.get_username(), channel))
    if approval.workflow.submitted_by_id != person.pk and not person.has_perm(ADMINISTER_WORKFLOW):
        raise Forbidden("Only who submitted the workflow, or an administrator, can withdraw a request for approval.")
    if approval.status not in (ApprovalStatus.PENDING, ApprovalStatus.APPROVED):
        raise ApprovalClosed(_how_it_ended(approval))
    approval.withdraw()
    _close(changes, approval, f"withdrawn by {person.get_username()}: {reason.strip()[:REASON_LIMIT]}")
    _end_step(changes, approval, reason)
    changes.finish()
    return approval


def _lock(approval_id: UUID, person: User, actor: Actor) -> tuple[Changes, Approval]:
    """Locks the workflow, then the approval. The account is read again: a right taken away counts at once (S25)."""
    found = Approval.objects.filter(pk=approval_id, workflow__in=workflows_visible_to(person)).first()
    if found is None:
        raise NotFound(f"There is no request for approval {approval_id} that you may see.")
    changes = transitions.lock([found.workflow_id], actor=actor)
    return changes, Approval.objects.select_for_update(of=("self",)).select_related("workflow").get(pk=approval_id)


def _check_complete(given: _Answer) -> None:
    if given.kind not in (DecisionKind.APPROVE, DecisionKind.REJECT):
        raise DecisionNotAllowed("A request for approval is answered with approve or reject.")
    if not given.reason or len(given.reason) > REASON_LIMIT or "\x00" in given.reason:
        raise DecisionIncomplete(
            f"reason: say in at most {REASON_LIMIT} characters why; it is kept in the audit trail."
        )


def _check_open(approval: Approval, changes: Changes) -> None:
    if approval.status != ApprovalStatus.PENDING:
        raise ApprovalClosed(_how_it_ended(approval))
    if changes.now >= approval.expires_at:
        raise ApprovalClosed(f"Its time was over at {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC; nothing was started.")


def _check_permitted(approval: Approval, rule: ApprovalRule, person: User) -> None:
    voter = permits.Voter(
        has_right=person.has_perm(DECIDE_APPROVAL),
        groups=set(person.groups.values_list("name", flat=True)),
        requester=approval.workflow.submitted_by_id == person.pk,
        answered=approval.decisions.filter(person=person).exists(),
    )
    if refusal := permits.refusal(rule, voter):
        raise Forbidden(refusal)


def _how_it_ended(approval: Approval) -> str:
    last = approval.decisions.order_by("-decided_at").first()
    if last is None:
        return f"This request is {approval.status}: {approval.closing or 'nobody answered'}."
    return (
        f"This request is {approval.status}: {last.person_name} answered “{last.kind}” at"
        f" {last.decided_at:%Y-%m-%d %H:%M:%S} UTC: {last.reason}"
    )


def _record(changes: Changes, approval: Approval, given: _Answer) -> Decision:
    changes.note_workflow(
        approval.workflow_id,
        given.kind.value,
        before=approval.status,
        reason=given.reason,
        details={"approval": str(approval.pk), "arguments_hash": approval.arguments_hash},
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


def _approve(changes: Changes, approval: Approval, rule: ApprovalRule) -> None:
    approval.approve()
    approval.usable_from = changes.now + timedelta(seconds=rule.wait_seconds) if rule.wait_seconds else None
    approval.save(update_fields=["status", "usable_from"])
    row = step_rows.of_ids([approval.step_id])[approval.step_id]
    changes.touch(row).next_at = approval.usable_from
    changes.note(row, "open_gate", details={"approval": str(approval.pk)})


def _reject(changes: Changes, approval: Approval, given: _Answer) -> None:
    approval.reject()
    _close(changes, approval, "")
    _end_step(changes, approval, given.reason)


def _close(changes: Changes, approval: Approval, how: str) -> None:
    approval.closed_at, approval.closing = changes.now, how
    approval.save(update_fields=["status", "closed_at", "closing"])


def _end_step(changes: Changes, approval: Approval, reason: str) -> None:
    """What is not allowed does not run, nor does what follows it; what did happen stays."""
    row = step_rows.of_ids([approval.step_id])[approval.step_id]
    changes.workflows[approval.workflow_id].winding_down = True
    changes.move(row, StepStatus.ABANDONED, verb="abandon", reason=reason)
