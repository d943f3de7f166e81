"""A request for approval is taken back: one transaction, for every channel."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User

from approvals.locked_requests import complete_reason, end_step, how_it_ended, lock
from checkpoint.errors import ApprovalClosed, Forbidden
from checkpoint.models import Approval
from checkpoint.people import Actor
from checkpoint.permissions import ADMINISTER_WORKFLOW, Person
from checkpoint.states import ApprovalStatus
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction


def withdraw(*, approval_id: UUID, person: User, channel: str, reason: str) -> Approval:
    """A request, or an approval that is not used, is taken back; the step and what follows end.

    Raises:
        NotFound: as for `answer`.
        Forbidden: this person may see it, but neither submitted the workflow nor may wind workflows down.
        DecisionIncomplete: no reason, or it is too long.
        ApprovalClosed: it was rejected, used, withdrawn or ran out already.
    """
    reason = complete_reason(reason)
    actor = Actor(person.get_username(), channel)
    try:
        return _withdraw(approval_id, person, actor, reason)
    except Forbidden as refusal:
        denials.record(actor=actor, verb="withdraw", subject=f"approval {approval_id}", reason=str(refusal))
        raise


@one_transaction
def _withdraw(approval_id: UUID, person: User, actor: Actor, reason: str) -> Approval:
    person = User.objects.get(pk=person.pk)
    changes, request = lock(approval_id, person, actor)
    approval, how = request.asked_about, f"withdrawn by {actor.name}: {reason}"
    if not may_withdraw(approval, person):
        raise Forbidden("Only who submitted the workflow, or who may wind workflows down, can take a request back.")
    if any((share.status, share.closing) == (ApprovalStatus.WITHDRAWN, how) for share in request.shares):
        return approval
    steps = request.unsent_steps
    if not steps:
        raise ApprovalClosed(how_it_ended(approval))
    for share in request.open_shares:
        share.withdraw()
        share.closed_at, share.closing = changes.now, how
    Approval.objects.bulk_update(request.shares, ["status", "closed_at", "closing"])
    changes.note_workflow(approval.workflow_id, "withdraw", reason=reason, details={"approval": str(approval.pk)})
    end_step(changes, steps[0], how)
    changes.finish()
    return approval


def may_withdraw(approval: Approval, person: Person) -> bool:
    """Whether it is this person's to take back."""
    return approval.workflow.submitted_by_id == person.pk or person.has_perm(ADMINISTER_WORKFLOW)
