"""What people tell each other about a case. It persuades nobody but people: no rule reads it."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User

from approvals.casework import case_work
from approvals.models import Comment
from checkpoint.errors import TooMany
from checkpoint.transactions import one_transaction

MOST_COMMENTS = 500


@one_transaction
def comment(*, case_id: UUID, person: User, channel: str, text: str) -> Comment:
    """Adds a comment, also to a case that is closed: what was learnt later belongs there too.

    Repeating one's own last words adds nothing (S18).

    Raises:
        NotFound, Forbidden: as `case_work.begin`.
        ActionIncomplete: no text, or it is too long.
        TooMany: the case has MOST_COMMENTS.
    """
    text = case_work.checked_text("text", text, wanted="write what others should know.")
    work = case_work.begin(case_id, person, channel, action="comment on cases")
    last = Comment.objects.filter(case=work.case).last()
    if last is not None and (last.person_id, last.text) == (work.person.pk, text):
        return last
    if Comment.objects.filter(case=work.case).count() >= MOST_COMMENTS:
        raise TooMany(f"This case has {MOST_COMMENTS} comments, and no more are kept.")
    made = Comment.objects.create(
        case=work.case,
        text=text,
        person=work.person,
        person_name=work.name,
        channel=work.channel,
        commented_at=work.now,
    )
    work.note("comment", reason=text)
    return made
