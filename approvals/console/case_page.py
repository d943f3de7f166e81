"""The page of one case: all that a decision needs, and what people do around it. Every action answers with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.dateparse import parse_datetime

from approvals import queries, signatures
from approvals.casework import assignments, similar_cases, snoozes
from approvals.consequences import HAPPENING
from approvals.console import bulk_form, passwords, task_form
from approvals.console.answers import Answer, Typed, arguments_intact, contract_of, offered
from approvals.inbox import question_list
from approvals.models import Escalation
from approvals.permissions import DECIDE_CASE
from approvals.where_to_look import place
from checkpoint.errors import (
    ActionIncomplete,
    CheckpointError,
    Conflict,
    DecisionIncomplete,
    DecisionNotAllowed,
    Forbidden,
)
from checkpoint.models import AuditStream, Case
from checkpoint.pages import is_htmx, is_shown, page
from checkpoint.permissions import Person
from checkpoint.states import STEP_TERMINAL, CaseReason, CaseStatus, StepStatus

CHANNEL = "console"
COMMENTS_SHOWN = 20
CANDIDATES_SHOWN = 200
SNOOZE_HOURS = (1, 4, 12, 24, 72, 168)
_REFUSALS = (Conflict, Forbidden, DecisionIncomplete, ActionIncomplete)
_STATUS_CODES: dict[type[CheckpointError], int] = {
    Conflict: 409,
    Forbidden: 403,
    DecisionIncomplete: 422,
    ActionIncomplete: 422,
}
# What the form of each action is called on the page, with the fields that a refusal can be about.
FORMS: Mapping[str, frozenset[str]] = {
    "assignment": frozenset({"to", "reason"}),
    "snooze": frozenset({"hours", "reason"}),
    "escalation": frozenset({"reason"}),
    "comment": frozenset({"text"}),
    "file": frozenset({"file", "reason"}),
}
_ANSWER_FIELDS = frozenset({"reason", "operation_id", passwords.FIELD})


def act(
    request: HttpRequest, case_id: UUID, form: str, verb: Callable[[], object], *, anchor: str = ""
) -> HttpResponse:
    """Does what a form asks, and answers with the case. The answer to a GET is the case too: a reload leads there.

    Args:
        form: its name in FORMS, or the kind of answer.
        anchor: where on the page a browser without JavaScript goes afterwards.
    """
    if request.method != "POST":
        return redirect("case", case_id)
    try:
        verb()
    except _REFUSALS as refusal:
        return _refused(request, case_id, form, refusal)
    if is_htmx(request):
        return show(request, case_id, Typed(kind=form, accepted=True))
    target = redirect("case", case_id)
    target["Location"] += anchor
    return target


def show(request: HttpRequest, case_id: UUID, typed: Typed | None = None, status: int = 200) -> HttpResponse:
    """One case as this person sees it. Raises NotFound."""
    found = queries.visible_case(request.user, case_id)
    seen = _seen(found)
    polled = request.method == "GET" and is_shown(request, seen)
    context = {} if polled else _context(found, request, typed or Typed()) | _work(found, request)
    return page(request, "case.html", "answer", context, status=status, seen=seen)


def _refused(request: HttpRequest, case_id: UUID, form: str, refusal: CheckpointError) -> HttpResponse:
    """The case as it is now, with the refusal beside what was typed."""
    status = next(code for kind, code in _STATUS_CODES.items() if isinstance(refusal, kind))
    field, sentence = passwords.about(refusal) or str(refusal).partition(": ")[::2]
    if field not in FORMS.get(form, _ANSWER_FIELDS):
        field, sentence = "", str(refusal)
    sent = request.POST
    typed = Typed(
        kind=form,
        reason=sent.get("reason", ""),
        operation_id=sent.get("operation_id", ""),
        values={name: sent.get(name, "") for name in ("to", "hours", "text", *task_form.names(sent))},
        field=field,
        refusal=sentence,
    )
    return show(request, case_id, typed, status)


def _seen(found: Case) -> str:
    """Names everything on the page that can change. Its forms are left alone while nothing else does.

    Whatever anybody does about the workflow is in its audit stream; only the end of a snooze comes by itself.
    """
    evidence = [item.pk for item in found.step.newest_evidence[:1]]  # type: ignore[attr-defined]
    entries = AuditStream.objects.filter(pk=found.workflow_id).values_list("last_seq", flat=True).first()
    aside = bool(snoozes.current(found))
    parts = (found.status, found.step.version, found.workflow.version, *evidence, entries, int(aside))
    return "-".join(str(part) for part in parts)


def _context(found: Case, request: HttpRequest, typed: Typed) -> dict[str, Any]:
    person = request.user
    is_open, contract, intact = found.status == CaseStatus.OPEN, contract_of(found), arguments_intact(found)
    may_decide = person.has_perm(DECIDE_CASE)
    answers, barred = _answers(found, person, typed) if is_open and may_decide and intact else ([], "")
    return {
        "case": found,
        "step": found.step,
        "is_task": found.reason == CaseReason.HUMAN_TASK,
        "answer_by": parse_datetime(found.findings.get("answer_by") or ""),
        "contract": contract,
        "place": place(contract, key=found.step.idempotency_key, operation_id=found.step.operation_id),
        "intact": intact,
        "may_decide": may_decide,
        "answers": answers,
        "barred": barred,
        "needs_password": bool(answers) and not passwords.is_recent(request) and signatures.wants_step_up(found),
        "typed": typed,
        "typed_lost": not any(answer.kind == typed.kind and not answer.withheld for answer in answers),
        "following": None if is_open else question_list.next_question(person),
        "other_case": queries.open_case_of_step(found),
        "happening": HAPPENING[StepStatus(found.step.status)],
        "settled": not is_open and found.step.status in STEP_TERMINAL,
        "forms": {name: typed if typed.kind == name else Typed() for name in FORMS},
    }


def _answers(found: Case, person: Person, typed: Typed) -> tuple[list[Answer], str]:
    """The answers offered; or none, and why."""
    try:
        return offered(found, person, typed), ""
    except DecisionNotAllowed as refusal:
        return [], str(refusal)


def _work(found: Case, request: HttpRequest) -> dict[str, Any]:
    """What people do about the case."""
    every = request.GET.get("comments") == "all"
    comments = list(found.comments.order_by("-pk")[: None if every else COMMENTS_SHOWN])
    held = assignments.current(found)
    return {
        "held": held,
        "has_it": held is not None and held.person_id == request.user.pk,
        "aside": snoozes.current(found),
        "escalation": Escalation.objects.filter(case=found).first(),
        "candidates": assignments.candidates(found.workflow.team)[:CANDIDATES_SHOWN],
        "snooze_hours": SNOOZE_HOURS,
        "comments": comments[::-1],
        "comment_count": found.comments.count(),
        "own_comments": found.comments.filter(person=request.user.pk).count(),
        "every_comment": every,
        "files": found.attachments.select_related("artifact"),
        "in_batch": similar_cases.others_in_group(found),
        "group": bulk_form.address(similar_cases.group(found)),
        "alike_open": similar_cases.open_ones(found),
        "alike_answered": similar_cases.answered(found),
        "signed": [] if found.status == CaseStatus.OPEN else found.signatures.all(),
    }
