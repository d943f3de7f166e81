"""Reads for people: bounded, keyset-paged, and without payload columns wherever there is more than one row."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet
from django.db.models.functions import Left

from checkpoint.errors import NotFound
from checkpoint.models import Approval, Artifact, Attempt, AuditEntry, Case, Evidence, Step, Waiver, Workflow
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.states import (
    CASE_RULES,
    OPEN_REQUESTS,
    ApprovalStatus,
    CaseReason,
    CaseRule,
    CaseStatus,
    StepStatus,
)

PAGE_SIZE = 50
STEPS_SHOWN = 50
ATTENTION_SHOWN = 20
CASES_SHOWN = 20
EVIDENCE_SHOWN = 20
AUDIT_SHOWN = 50
PREVIEW = 600
COUNT_LIMIT = 100


@dataclass(frozen=True)
class Page[T]:
    """Some rows, and where the next ones begin; `following` is None on the last page."""

    rows: Sequence[T]
    following: UUID | None


@dataclass(frozen=True)
class CaseGroup:
    """Open questions of one batch that are alike."""

    position: int
    tool: str
    reason: str
    count: int

    @property
    def rule(self) -> CaseRule:
        """What their reason allows."""
        return CASE_RULES[CaseReason(self.reason)]


def partial_result() -> Exists:
    """Whether the plan went on without some of its steps."""
    return Exists(Waiver.objects.filter(step__workflow=OuterRef("pk")))


def visible_workflow(person: Person, workflow_id: UUID) -> Workflow:
    """One workflow with its goal and whether it is `partial`; its input stays behind. Raises NotFound."""
    found = workflows_visible_to(person).select_related("team", "policy_version", "submitted_by").defer("input")
    try:
        return found.annotate(partial=partial_result()).get(pk=workflow_id)
    except Workflow.DoesNotExist:
        raise NotFound(f"There is no workflow {workflow_id} that you may see.") from None


def visible_step(person: Person, step_id: UUID) -> Step:
    """One step with its whole arguments. Raises NotFound."""
    try:
        related = Step.objects.select_related("tool_version", "receipt", "workflow__team")
        return related.get(pk=step_id, workflow__in=workflows_visible_to(person))
    except Step.DoesNotExist:
        raise NotFound(f"There is no step {step_id} that you may see.") from None


def undone_by(steps: Iterable[Step]) -> dict[UUID, Step]:
    """The newest step that undoes each of these, where there is one."""
    found = Step.objects.filter(compensates__in=[step.pk for step in steps]).defer(*_PAYLOADS).order_by("id")
    return {step.compensates_id: step for step in found if step.compensates_id}


def visible_evidence(person: Person, evidence_id: UUID) -> Evidence:
    """One piece of evidence with its whole facts. Raises NotFound."""
    try:
        return Evidence.objects.get(pk=evidence_id, step__workflow__in=workflows_visible_to(person))
    except Evidence.DoesNotExist:
        raise NotFound(f"There is no evidence {evidence_id} that you may see.") from None


def evidence_page(step: Step, *, before: UUID | None = None) -> Page[Evidence]:
    """The newest evidence of a step, older than `before`, with its whole facts."""
    found = step.evidence.order_by("-id")
    if before is not None:
        found = found.filter(id__lt=before)
    rows = list(found[: EVIDENCE_SHOWN + 1])
    more = len(rows) > EVIDENCE_SHOWN
    return Page(rows[:EVIDENCE_SHOWN], rows[EVIDENCE_SHOWN - 1].id if more else None)


def attention(workflow: Workflow) -> list[Step]:
    """The first ATTENTION_SHOWN steps that need somebody, in the plan's order, as `plan` shows them."""
    asked = Q(cases__status=CaseStatus.OPEN) | Q(status__in=[StepStatus.UNCERTAIN, StepStatus.FAILED])
    found = workflow.steps.filter(asked).order_by("position", "name", "id")
    ids = found.values_list("position", "name", "id").distinct()
    return _with_records(workflow.steps.filter(pk__in=[pk for *_, pk in ids[:ATTENTION_SHOWN]]), ATTENTION_SHOWN)


def plan(workflow: Workflow, *, after: UUID | None = None, without: Collection[UUID] = ()) -> Page[Step]:
    """The steps in the plan's order, those behind step `after`, with their records; payloads as previews.

    Each step has `arguments_preview`, `receipt_preview`, `newest_evidence`, `open_cases` and `open_requests`.

    Args:
        without: steps that are left out, because they are shown elsewhere.
    """
    steps = workflow.steps.exclude(pk__in=without)
    last = workflow.steps.filter(pk=after).only("position", "name", "status").first() if after else None
    if last is not None:
        same = Q(position=last.position, name=last.name, id__gt=last.id)
        steps = steps.filter(same | Q(position=last.position, name__gt=last.name) | Q(position__gt=last.position))
    rows = _with_records(steps, STEPS_SHOWN + 1)
    more = len(rows) > STEPS_SHOWN
    return Page(rows[:STEPS_SHOWN], rows[STEPS_SHOWN - 1].id if more else None)


def _with_records(steps: QuerySet[Step], most: int) -> list[Step]:
    related = steps.select_related("tool_version", "lease_holder", "receipt", "compensates", "waiver")
    return list(
        related.defer(
            *_PAYLOADS,
            "compensates__arguments",
            "compensates__template",
            "receipt__facts",
            "tool_version__schema",
            "tool_version__summary",
        )
        .annotate(arguments_preview=Left("arguments", PREVIEW), receipt_preview=Left("receipt__facts", PREVIEW))
        .prefetch_related(*_records_of_steps())
        .order_by("position", "name", "id")[:most]
    )


def _records_of_steps() -> list[Prefetch[Any]]:
    evidence = Evidence.objects.defer("facts").annotate(preview=Left("facts", PREVIEW)).order_by("-id")
    return [
        Prefetch("attempts", Attempt.objects.select_related("worker").order_by("number")),
        Prefetch("evidence", evidence[:EVIDENCE_SHOWN], to_attr="newest_evidence"),
        Prefetch("cases", Case.objects.filter(status=CaseStatus.OPEN).defer("findings"), to_attr="open_cases"),
        Prefetch("approvals", Approval.objects.filter(status__in=OPEN_REQUESTS), to_attr="open_requests"),
    ]


def cases_of(workflow: Workflow) -> list[Case]:
    """The questions about a workflow: the open ones, then what was closed, oldest first; at most CASES_SHOWN."""
    found = workflow.cases.select_related("step").defer("findings", *_STEP_PAYLOADS)
    return list(found.order_by(F("closed_at").asc(nulls_first=True), "opened_at")[:CASES_SHOWN])


def open_groups(workflow: Workflow) -> list[CaseGroup]:
    """Open questions that are alike: about steps of one position and one tool, for one reason; groups of one are none.

    In the plan's order, at most CASES_SHOWN groups.
    """
    found = workflow.cases.filter(status=CaseStatus.OPEN).order_by(
        "step__position", "step__tool_version__name", "reason"
    )
    counted = found.values_list("step__position", "step__tool_version__name", "reason").annotate(count=Count("id"))
    return [CaseGroup(*row) for row in counted.filter(count__gt=1)[:CASES_SHOWN]]


def requests_of(workflow: Workflow) -> list[Approval]:
    """The requests for approval, those that wait for an answer first, then the newest; at most COUNT_LIMIT."""
    found = workflow.approvals.filter(part_of=None).select_related("step").defer(*_STEP_PAYLOADS)
    return list(found.order_by(F("closed_at").desc(nulls_first=True), "-id")[:COUNT_LIMIT])


def artifacts_of(workflow: Workflow, *, after: UUID | None = None) -> Page[Artifact]:
    """The workflow's artifacts, oldest first, those behind artifact `after`."""
    found = workflow.artifacts.order_by("id")
    rows = list((found.filter(id__gt=after) if after else found)[: PAGE_SIZE + 1])
    more = len(rows) > PAGE_SIZE
    return Page(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].id if more else None)


_PAYLOADS = ("arguments", "template")
_STEP_PAYLOADS = ("step__arguments", "step__template")


def audit_trail(workflow: Workflow, *, limit: int = AUDIT_SHOWN) -> list[dict[str, Any]]:
    """The newest entries of the workflow's stream, newest first, as they were hashed."""
    texts = AuditEntry.objects.filter(stream_id=workflow.pk).order_by("-seq").values_list("text", flat=True)[:limit]
    return [json.loads(text) for text in texts]


def open_question_count(person: Person) -> int:
    """How many open cases and requests for approval the person sees; counts no further than COUNT_LIMIT."""
    visible = workflows_visible_to(person)
    cases = Case.objects.filter(status=CaseStatus.OPEN, workflow__in=visible)
    requests = Approval.objects.filter(status=ApprovalStatus.PENDING, part_of=None, workflow__in=visible)
    return min(cases[:COUNT_LIMIT].count() + requests[:COUNT_LIMIT].count(), COUNT_LIMIT)
