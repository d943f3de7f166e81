"""What a notice says, before it takes the form of a mail or a message.

Words of ours and words of others are kept apart from the start: `subject` and `opening` hold ours alone, `facts` hold
names and times, `quotes` hold what an agent, a tool or a person wrote. Whoever renders a letter treats the last two as
hostile. The one link leads to a page that asks for a login and shows what is true by then (S11, S20).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from approvals.models import Notice
from approvals.notifying import letter_contents
from approvals.notifying.letter_contents import Content, address_of
from approvals.notifying.notice_rules import NoticeKind


@dataclass(frozen=True)
class Letter:
    """One notice in words.

    Attributes:
        id: the notice's, the same at every try; receivers tell copies by it.
        thread: the case's, approval's or workflow's id; letters about the same thing belong together.
        type: how programs call it: "case.asked", "workflow.outcome".
        quotes: (whose words these are, the words).
        why: why this person or channel gets it.
        data: the same for programs.
    """

    id: uuid.UUID
    thread: uuid.UUID
    type: str
    at: datetime
    subject: str
    opening: str
    facts: list[tuple[str, str]]
    quotes: list[tuple[str, str]]
    link: str
    link_words: str
    why: str
    settings_link: str
    data: dict[str, Any] = field(default_factory=dict)


def letter_of(notice_id: uuid.UUID) -> Letter:
    """The letter of a notice, as of now."""
    notice = _with_all_that_is_told().get(pk=notice_id)
    kind = NoticeKind(notice.kind)
    if notice.case is not None:
        return _letter(notice, "case", notice.case.pk, letter_contents.about_case(notice.case, kind))
    if notice.approval is not None:
        return _letter(notice, "approval", notice.approval.pk, letter_contents.about_approval(notice.approval, kind))
    return _letter(notice, "workflow", notice.workflow_id, letter_contents.about_end(notice.workflow))


def _with_all_that_is_told() -> QuerySet[Notice]:
    """With the rows that a letter is written from, payloads left behind."""
    told = ("channel", "workflow__team", "case__step__tool_version", "approval__step__tool_version")
    step = ("arguments", "template", "tool_version__schema")
    payloads = [f"{about}__step__{name}" for about in ("case", "approval") for name in step]
    return Notice.objects.select_related(*told).defer(
        "workflow__input", "workflow__constraints", "case__findings", *payloads
    )


_WHY = {
    NoticeKind.ASKED: "You may answer for this team.",
    NoticeKind.REMINDER: "You may answer for this team.",
    NoticeKind.ESCALATION: "You are told of what stays unanswered.",
    NoticeKind.ASSIGNED: "It was assigned to you.",
    NoticeKind.SECOND_PERSON: "You may answer for this team.",
    NoticeKind.DECIDED: "You submitted this workflow.",
    NoticeKind.OUTCOME: "You submitted this workflow.",
}


def _letter(notice: Notice, thing: str, thread: uuid.UUID, content: Content) -> Letter:
    workflow = notice.workflow
    common = {
        "workflow_id": str(workflow.pk),
        "workflow_kind": workflow.kind,
        "team": workflow.team.slug,
        "url": content.link,
    }
    return Letter(
        id=notice.pk,
        thread=thread,
        type=f"{thing}.{notice.kind}",
        at=notice.created_at,
        subject=content.subject,
        opening=content.opening,
        facts=[
            *content.facts,
            ("Workflow", f"{workflow.kind} …{letter_contents.tail(workflow)}"),
            ("Team", workflow.team.name),
        ],
        quotes=[*content.quotes, ("The goal, in the agent's words", letter_contents.goal(workflow))],
        link=content.link,
        link_words=content.link_words,
        why=_WHY[NoticeKind(notice.kind)] if notice.channel is None else "This channel is set up for the team.",
        settings_link=address_of("notice_settings"),
        data=content.data | common,
    )
