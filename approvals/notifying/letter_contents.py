"""The content of letters about cases, requests for approval and ends: our words, facts, and quotes of others' words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from approvals.models import Decision
from approvals.notifying.notice_rules import NoticeKind
from checkpoint import workflow_lists
from checkpoint.contracts import Reversibility
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Approval, Case, Step, Workflow
from checkpoint.states import WorkflowStatus

GOAL_SHOWN = 300  # characters
REASON_SHOWN = 1000

_ABOUT_CASE = {
    NoticeKind.ASKED: ("A question waits", "A workflow has stopped and asks a question that you may answer."),
    NoticeKind.REMINDER: ("Still waiting", "This question is still open. The workflow waits for an answer."),
    NoticeKind.ESCALATION: (
        "Nobody has answered",
        "This question is still open. The workflow waits for an answer.",
    ),
    NoticeKind.ASSIGNED: ("Assigned to you", "Somebody gave you this question; the page says who, and why."),
    NoticeKind.SECOND_PERSON: ("A second person is needed", "Somebody answered this question; your answer may decide."),
}
_ABOUT_APPROVAL = {
    NoticeKind.ASKED: ("Approval wanted", "A workflow asks for permission before it runs a step. You may give it."),
    NoticeKind.REMINDER: ("Still waiting for approval", "Nothing runs until somebody approves or rejects it."),
    NoticeKind.ESCALATION: ("Nobody has approved", "A request for approval is still open. Nothing runs meanwhile."),
    NoticeKind.SECOND_PERSON: (
        "A second approval is needed",
        "Somebody approved it; it waits for another person.",
    ),
}
_DECIDED = "The page shows what happened next."


@dataclass(frozen=True)
class Content:
    """What a letter says that depends on what it is about; see `letters.Letter`."""

    subject: str
    opening: str
    facts: list[tuple[str, str]]
    quotes: list[tuple[str, str]]
    link: str
    link_words: str
    data: dict[str, Any]


def about_case(case: Case, kind: NoticeKind) -> Content:
    """That a question is open, or how it was answered."""
    step, grave = case.step, _cannot_be_undone(case.step)
    content: dict[str, Any] = {
        "quotes": [("The question", case.sentence)],
        "link": address_of("case", case.pk),
        "link_words": "Open the case",
        "data": _step_data(step)
        | {
            "case_id": str(case.pk),
            "reason": case.reason,
            "question": case.rule.title,
            "sentence": case.sentence,
            "opened_at": case.opened_at.isoformat(),
        },
    }
    if kind is NoticeKind.DECIDED:
        opening = f"A question about the workflow that you submitted was answered. {_DECIDED}"
        return _decided(Decision.objects.get(case=case), case.rule.title, opening, step, content)
    subject, opening = _ABOUT_CASE[kind]
    facts = [("Step", _step_words(step, grave=grave)), ("Open since", clock(case.opened_at))]
    return Content(subject=f"{subject}: {case.rule.title}", opening=opening, facts=facts, **content)


def about_approval(approval: Approval, kind: NoticeKind) -> Content:
    """That permission is asked for, or how that was answered."""
    step, rule = approval.step, ApprovalRule.from_json(approval.rule)
    content: dict[str, Any] = {
        "quotes": [],
        "link": address_of("approval", approval.pk),
        "link_words": "Open the request",
        "data": _step_data(step)
        | {
            "approval_id": str(approval.pk),
            "scope": rule.scope.value,
            "needed": rule.needed,
            "requested_at": approval.requested_at.isoformat(),
            "expires_at": approval.expires_at.isoformat(),
        },
    }
    if kind is NoticeKind.DECIDED:
        opening = f"A request for approval of the workflow that you submitted was answered. {_DECIDED}"
        decision = Decision.objects.filter(approval=approval).latest("decided_at")
        return _decided(decision, "request for approval", opening, step, content)
    subject, opening = _ABOUT_APPROVAL[kind]
    facts = [
        ("Step", _step_words(step, grave=_cannot_be_undone(step))),
        ("Asked for", f"{'the rest of the plan' if approval.plan_hash else 'this step'}, by {_people(rule.needed)}"),
        ("Asked since", clock(approval.requested_at)),
        ("Until", clock(approval.expires_at)),
    ]
    return Content(subject=subject, opening=opening, facts=facts, **content)


def about_end(workflow: Workflow) -> Content:
    """How a workflow ended. Nothing is called completed before it is verified."""
    progress = workflow_lists.progress_of([workflow]).get(workflow.pk, workflow_lists.Progress())
    if workflow.status == WorkflowStatus.COMPLETED:
        opening = _done(progress)
        if progress.unread:
            opening += f" {progress.unread} of {progress.total} could not be read back: a receipt or a person's word"
            opening += " says that they took effect."
    else:
        opening = "The workflow that you submitted was ended before it was done."
        opening += f" {progress.verified} of {progress.total} steps are verified; what took effect stays in place."
    steps = {
        "verified": progress.verified,
        "total": progress.total,
        "not_read_back": progress.unread,
        "waived": progress.waived,
    }
    in_part = " in part" if progress.waived and workflow.status == WorkflowStatus.COMPLETED else ""
    return Content(
        subject=f"{workflow.status.capitalize()}{in_part}: workflow …{tail(workflow)}",
        opening=opening,
        facts=[("Ended", clock(workflow.ended_at) if workflow.ended_at else "")],
        quotes=[],
        link=address_of("workflow", workflow.pk),
        link_words="Open the workflow",
        data={"status": str(workflow.status), "steps": steps},
    )


def _done(progress: workflow_lists.Progress) -> str:
    if not progress.waived:
        return "Every step of the workflow that you submitted is verified."
    return (
        f"The workflow that you submitted is completed in part: {progress.verified} of {progress.total} steps are"
        f" verified, and {progress.waived} were waived by the policy, because they failed or rest on what failed."
    )


def address_of(name: str, *arguments: Any) -> str:
    """The whole address of a page."""
    return f"{settings.CHECKPOINT_BASE_URL}{reverse(name, args=arguments)}"


def goal(workflow: Workflow) -> str:
    """The beginning of the workflow's goal."""
    return _cut(workflow.goal, GOAL_SHOWN)


def tail(workflow: Workflow) -> str:
    """The end of the workflow's id, by which people name it."""
    return str(workflow.pk)[-8:]


def clock(moment: datetime) -> str:
    """A time as mails show it."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _decided(decision: Decision, question: str, opening: str, step: Step, content: dict[str, Any]) -> Content:
    content["quotes"] = [*content["quotes"], ("The reason given", _cut(decision.reason, REASON_SHOWN))]
    answer = {"decision": decision.kind, "by": decision.person_name, "decided_at": decision.decided_at.isoformat()}
    content["data"] |= answer
    facts = [
        ("Step", step.name),
        ("Answer", decision.kind),
        ("By", f"{decision.person_name}, {clock(decision.decided_at)}"),
    ]
    return Content(subject=f"Decided: {decision.kind} ({question})", opening=opening, facts=facts, **content)


def _step_data(step: Step) -> dict[str, Any]:
    return {"step": step.name, "tool": str(step.tool_version), "cannot_be_undone": _cannot_be_undone(step)}


def _step_words(step: Step, *, grave: bool) -> str:
    return f"{step.name}, with {step.tool_version}{', which cannot be undone' if grave else ''}"


def _cannot_be_undone(step: Step) -> bool:
    if not step.variant:
        return False
    return step.tool_version.contract(step.variant).reversibility is Reversibility.IRREVERSIBLE


def _people(count: int) -> str:
    return "one person" if count == 1 else f"{count} people"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
