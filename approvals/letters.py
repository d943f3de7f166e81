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

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse

from approvals.models import Decision, Notice
from approvals.notice_rules import NoticeKind
from checkpoint import queries
from checkpoint.contracts import Reversibility
from checkpoint.models import Case, Workflow
from checkpoint.states import WorkflowStatus

GOAL_SHOWN = 300  # characters
REASON_SHOWN = 1000


@dataclass(frozen=True)
class Letter:
    """One notice in words.

    Attributes:
        id: the notice's, the same at every try; receivers tell copies by it.
        thread: the case's or workflow's id; letters about the same thing belong together.
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
    if notice.kind == NoticeKind.OUTCOME:
        return _letter(notice, **_outcome(notice.workflow))
    assert notice.case is not None, "every other kind is about a case"
    if notice.kind == NoticeKind.DECIDED:
        return _letter(notice, **_decided(notice.case))
    return _letter(notice, **_asked(notice, notice.case))


def _with_all_that_is_told() -> QuerySet[Notice]:
    """With the rows that a letter is written from, payloads left behind."""
    told = ("channel", "workflow__team", "case__step__tool_version")
    payloads = ("findings", "step__arguments", "step__template", "step__tool_version__schema")
    return Notice.objects.select_related(*told).defer(
        "workflow__input", "workflow__constraints", *(f"case__{name}" for name in payloads)
    )


def address_of(name: str, *arguments: Any) -> str:
    """The whole address of a page."""
    return f"{settings.CHECKPOINT_BASE_URL}{reverse(name, args=arguments)}"


_SUBJECTS = {
    NoticeKind.ASKED: "A question waits",
    NoticeKind.REMINDER: "Still waiting",
    NoticeKind.ESCALATION: "Nobody has answered",
}
_OPENINGS = {
    NoticeKind.ASKED: "A workflow has stopped and asks a question that you may answer.",
    NoticeKind.REMINDER: "This question is still open. The workflow waits for an answer.",
    NoticeKind.ESCALATION: "Nobody has answered this question in the time set for it. The workflow still waits.",
}
_WHY = {
    NoticeKind.ASKED: "You may decide cases of this team.",
    NoticeKind.REMINDER: "You may decide cases of this team.",
    NoticeKind.ESCALATION: "You are told of questions that stay unanswered.",
    NoticeKind.DECIDED: "You submitted this workflow.",
    NoticeKind.OUTCOME: "You submitted this workflow.",
}


def _letter(notice: Notice, **told: Any) -> Letter:
    thing, thread = ("workflow", notice.workflow_id) if notice.case_id is None else ("case", notice.case_id)
    workflow = notice.workflow
    told["facts"] = [*told["facts"], ("Workflow", f"{workflow.kind} …{_tail(workflow)}"), ("Team", workflow.team.name)]
    told["data"] |= {
        "workflow_id": str(workflow.pk),
        "workflow_kind": workflow.kind,
        "team": workflow.team.slug,
        "url": told["link"],
    }
    return Letter(
        id=notice.pk,
        thread=thread,
        type=f"{thing}.{notice.kind}",
        at=notice.created_at,
        why=_WHY[NoticeKind(notice.kind)] if notice.channel is None else "This channel is set up for the team.",
        settings_link=address_of("notice_settings"),
        **told,
    )


def _asked(notice: Notice, case: Case) -> dict[str, Any]:
    kind, step = NoticeKind(notice.kind), case.step
    grave = bool(step.variant) and step.tool_version.contract(step.variant).reversibility is Reversibility.IRREVERSIBLE
    return {
        "subject": f"{_SUBJECTS[kind]}: {case.rule.title}",
        "opening": _OPENINGS[kind],
        "facts": [
            ("Step", f"{step.name}, with {step.tool_version}{', which cannot be undone' if grave else ''}"),
            ("Open since", _clock(case.opened_at)),
        ],
        "quotes": [("The question", case.sentence), ("The goal, in the agent's words", _goal(notice.workflow))],
        "link": address_of("case", case.pk),
        "link_words": "Open the case",
        "data": _case_data(case) | {"sentence": case.sentence, "cannot_be_undone": grave},
    }


def _decided(case: Case) -> dict[str, Any]:
    decision = Decision.objects.filter(case=case).latest("decided_at")
    return {
        "subject": f"Decided: {decision.kind} ({case.rule.title})",
        "opening": "A question about the workflow that you submitted was answered. The page shows what happened next.",
        "facts": [
            ("Step", case.step.name),
            ("Answer", decision.kind),
            ("By", f"{decision.person_name}, {_clock(decision.decided_at)}"),
        ],
        "quotes": [("The question", case.sentence), ("The reason given", _cut(decision.reason, REASON_SHOWN))],
        "link": address_of("case", case.pk),
        "link_words": "Open the case",
        "data": _case_data(case)
        | {"decision": decision.kind, "by": decision.person_name, "decided_at": decision.decided_at.isoformat()},
    }


def _outcome(workflow: Workflow) -> dict[str, Any]:
    progress = queries.progress_of([workflow]).get(workflow.pk, queries.Progress())
    if workflow.status == WorkflowStatus.COMPLETED:
        opening = "Every step of the workflow that you submitted is verified."
        if progress.unread:
            opening += (
                f" {progress.unread} of {progress.total} could not be read back: a receipt or a person's word says"
            )
            opening += " that they took effect."
    else:
        opening = "The workflow that you submitted was ended before it was done."
        opening += f" {progress.verified} of {progress.total} steps are verified; what took effect stays in place."
    return {
        "subject": f"{workflow.status.capitalize()}: workflow …{_tail(workflow)}",
        "opening": opening,
        "facts": [("Ended", _clock(workflow.ended_at) if workflow.ended_at else "")],
        "quotes": [("The goal, in the agent's words", _goal(workflow))],
        "link": address_of("workflow", workflow.pk),
        "link_words": "Open the workflow",
        "data": {
            "status": str(workflow.status),
            "steps": {"verified": progress.verified, "total": progress.total, "not_read_back": progress.unread},
        },
    }


def _case_data(case: Case) -> dict[str, Any]:
    return {
        "case_id": str(case.pk),
        "reason": case.reason,
        "question": case.rule.title,
        "step": case.step.name,
        "tool": str(case.step.tool_version),
        "opened_at": case.opened_at.isoformat(),
    }


def _goal(workflow: Workflow) -> str:
    return _cut(workflow.goal, GOAL_SHOWN)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


def _tail(workflow: Workflow) -> str:
    return str(workflow.pk)[-8:]


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
