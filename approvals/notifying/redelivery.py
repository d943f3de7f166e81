"""An administrator has a notice sent again: one transaction, audited in the workflow's stream."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.auth.models import User

from approvals.notifying.notice_queries import notices_visible_to
from approvals.notifying.notice_rules import NoticeState
from approvals.permissions import ADMINISTER_NOTICES
from checkpoint import audit, clock
from checkpoint.errors import Conflict, Forbidden, NotFound
from checkpoint.people import Actor
from checkpoint.permissions import require
from checkpoint.trail import denials
from checkpoint.transactions import one_transaction


class BeingSent(Conflict):
    """A sender has the notice right now."""

    code = "notice_being_sent"


def redeliver(*, notice_id: uuid.UUID, person: User, channel: str) -> None:
    """Makes a notice due at once, with a full budget of tries. Its id stays the same: receivers may tell it for a copy.

    Raises:
        NotFound: no such notice, or none that this person may see.
        Forbidden: the person may see it but not have it sent.
        BeingSent: it is being sent right now.
    """
    actor = Actor(person.get_username(), channel)
    try:
        _redeliver(notice_id, person, actor)
    except Forbidden as refusal:
        denials.record(actor=actor, verb="redeliver", subject=f"notice {notice_id}", reason=str(refusal))
        raise


@one_transaction
def _redeliver(notice_id: uuid.UUID, person: User, actor: Actor) -> None:
    present = User.objects.get(pk=person.pk)  # read again: a right that was taken away counts at once (S25)
    require(present, ADMINISTER_NOTICES, action="have notices sent again")
    notice = notices_visible_to(present).select_for_update(of=("self",)).filter(pk=notice_id).first()
    if notice is None:
        raise NotFound(f"There is no notice {notice_id} that you may see.")
    now = clock.now()
    if notice.state == NoticeState.SENDING and notice.due_at > now:
        raise BeingSent("This notice is being sent right now. Look again in a minute before you send it once more.")
    before = notice.state
    notice.state, notice.due_at, notice.settled_at, notice.detail = NoticeState.WAITING, now, None, ""
    notice.attempts_allowed = notice.attempt_count + settings.CHECKPOINT_NOTICE_ATTEMPTS
    notice.save(update_fields=["state", "due_at", "settled_at", "detail", "attempts_allowed"])
    entry = audit.Entry(
        notice.workflow_id,
        actor,
        "redeliver",
        f"notice {notice.pk}",
        before=before,
        after=NoticeState.WAITING,
        details={"kind": notice.kind, "recipient": notice.recipient},
    )
    audit.append([entry], at=now)
