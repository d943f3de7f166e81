"""Workflows in lists: narrowed, searched, a page at a time, with how far each has come."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast, Left

from checkpoint.models import Approval, Case, Step, Workflow
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.queries import PAGE_SIZE, PREVIEW, Page, partial_result
from checkpoint.states import ApprovalStatus, CaseStatus, Standing, StepStatus

_ID_TAIL = re.compile(r"[0-9a-f-]{4,36}", re.IGNORECASE)


@dataclass(frozen=True)
class WorkflowFilter:
    """What a list of workflows is narrowed to; empty members narrow nothing.

    Attributes:
        team: a team's slug.
        asked: only workflows about which a question is open.
        reference: what its caller calls it.
        search: part of the goal or kind, or the end of an id.
    """

    status: str = ""
    kind: str = ""
    team: str = ""
    asked: bool = False
    search: str = ""
    reference: str = ""


@dataclass(frozen=True)
class Progress:
    """How many of a workflow's steps are verified, and on what.

    Attributes:
        unread: verified steps that stand on a receipt or a person's word, because nothing could read the outcome.
        waived: steps without which the plan went on; where there are any, the result is a partial one.
    """

    verified: int = 0
    total: int = 0
    unread: int = 0
    waived: int = 0


def workflow_page(person: Person, narrowed: WorkflowFilter, *, before: UUID | None = None) -> Page[Workflow]:
    """The newest workflows that the person sees, older than `before`. Each has `goal_preview`, `asked`, `partial`."""
    found = _narrow(workflows_visible_to(person), narrowed)
    if before is not None:
        found = found.filter(id__lt=before)
    rows = list(
        found.select_related("team", "submitted_by")
        .defer("goal", "constraints", "input")
        .annotate(goal_preview=Left("goal", PREVIEW), asked=_asked(), partial=partial_result())
        .order_by("-id")[: PAGE_SIZE + 1]
    )
    more = len(rows) > PAGE_SIZE
    return Page(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].id if more else None)


def _narrow(found: QuerySet[Workflow], narrowed: WorkflowFilter) -> QuerySet[Workflow]:
    exact = {"status": narrowed.status, "kind": narrowed.kind, "team__slug": narrowed.team}
    exact["reference"] = narrowed.reference
    found = found.filter(**{name: value for name, value in exact.items() if value})
    if narrowed.asked:
        found = found.filter(_asked())
    return _search(found, narrowed.search.strip().lstrip("…"))


def _asked() -> Q:
    """Whether people are asked something about the workflow: a case, or a request for approval."""
    cases = Case.objects.filter(workflow=OuterRef("pk"), status=CaseStatus.OPEN)
    requests = Approval.objects.filter(workflow=OuterRef("pk"), status=ApprovalStatus.PENDING)
    return Q(Exists(cases)) | Q(Exists(requests))


def _search(found: QuerySet[Workflow], words: str) -> QuerySet[Workflow]:
    if not words:
        return found
    with suppress(ValueError):
        return found.filter(pk=UUID(words))
    matches = Q(goal__icontains=words) | Q(kind__icontains=words)
    if _ID_TAIL.fullmatch(words):
        matches |= Q(id_text__endswith=words.lower())
    return found.alias(id_text=Cast("id", TextField())).filter(matches)


def progress_of(workflows: Iterable[Workflow]) -> dict[UUID, Progress]:
    """Each workflow's progress, in one query."""
    verified = Q(status=StepStatus.VERIFIED)
    counted = (
        Step.objects.filter(workflow__in=[workflow.pk for workflow in workflows])
        .values_list("workflow_id")
        .order_by()
        .annotate(
            verified=Count("id", filter=verified),
            total=Count("id", filter=~Q(status=StepStatus.SUPERSEDED)),
            unread=Count("id", filter=verified & ~Q(standing=Standing.VERIFIED)),
            waived=Count("waiver"),
        )
    )
    return {workflow_id: Progress(*counts) for workflow_id, *counts in counted}


def kinds_visible_to(person: Person) -> list[str]:
    """Kinds among the newest workflows that the person sees, for a filter's suggestions."""
    newest = workflows_visible_to(person).order_by("-id").values_list("kind", flat=True)[:1000]
    return sorted(set(newest))
