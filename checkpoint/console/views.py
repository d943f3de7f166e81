"""The list of workflows, and one workflow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from checkpoint import clock, compensations, permissions, queries, workflow_lists, workflows
from checkpoint.explaining import step_counts
from checkpoint.explaining.explanations import StepExplanation, explain
from checkpoint.models import Step, Workflow
from checkpoint.pages import cursor, page
from checkpoint.rows.workflow_records import Records, budgets_at_front, owners_of
from checkpoint.states import WORKFLOW_TERMINAL, WorkflowStatus
from checkpoint.turns import pinned
from checkpoint.workflow_lists import WorkflowFilter

LONGEST_SEARCH = 200


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What needs people comes first."""
    return redirect("review")


@require_safe
def workflow_list(request: HttpRequest) -> HttpResponse:
    """The newest workflows, narrowed by the address's query."""
    narrowed = _filter(request.GET)
    found = workflow_lists.workflow_page(request.user, narrowed, before=cursor(request, "before"))
    context = {
        "narrowed": narrowed,
        "found": found,
        "progress": workflow_lists.progress_of(found.rows),
        "following": _with(request.GET, before=found.following),
        "teams": permissions.teams_visible_to(request.user),
        "kinds": partial(workflow_lists.kinds_visible_to, request.user),
        "statuses": list(WorkflowStatus),
    }
    return page(request, "workflows.html", "rows", context)


def _filter(query: QueryDict) -> WorkflowFilter:
    return WorkflowFilter(
        status=query.get("status", ""),
        kind=query.get("kind", ""),
        team=query.get("team", ""),
        asked=query.get("asked") == "1",
        search=query.get("search", "")[:LONGEST_SEARCH],
    )


def _with(query: QueryDict, **changed: Any) -> str:
    """The address's query with some members replaced."""
    copy = query.copy()
    for name, value in changed.items():
        copy[name] = str(value)
    return copy.urlencode()


@require_safe
def workflow(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """One workflow: where it is, its plan, and who did what."""
    found = queries.visible_workflow(request.user, workflow_id)
    after = cursor(request, "after")
    plan, urgent = _plan(found, after)
    shown = [*urgent, *plan.rows]
    # What comes next depends on every step before; a later page of a long plan does not hold those.
    owners = owners_of(shown)
    told = {} if after else _told(found, shown, owners)
    context = _workflow_context(found, plan, urgent, request.GET)
    return page(
        request,
        "workflow.html",
        "live",
        context
        | {
            "told": told,
            "owners": owners,
            "may_abandon": _may_abandon(request, found),
            "undoable": _undoable(request, found, shown),
        },
    )


def _plan(found: Workflow, after: UUID | None) -> tuple[queries.Page[Step], list[Step]]:
    """A page of the plan; before the first of several, the steps that need somebody, which that page leaves out."""
    plan = queries.plan(found, after=after)
    urgent = queries.attention(found) if plan.following and not after else []
    return (queries.plan(found, without=[step.pk for step in urgent]), urgent) if urgent else (plan, [])


def _undoable(request: HttpRequest, found: Workflow, steps: Sequence[Step]) -> set[UUID]:
    """The steps whose effect this person may have undone."""
    over = found.status in WORKFLOW_TERMINAL or found.winding_down
    if not over or not workflows.may_abandon(request.user, found):
        return set()
    return {step.pk for step in steps if compensations.declares_how(step)}


def _may_abandon(request: HttpRequest, found: Workflow) -> bool:
    return found.status not in WORKFLOW_TERMINAL and workflows.may_abandon(request.user, found)


def _told(found: Workflow, steps: Sequence[Any], owners: dict[UUID, Step]) -> dict[UUID, StepExplanation]:
    """What is uncertain about each step and what happens next with it."""
    records = Records(
        workflow=found,
        steps=steps,
        attempts={step.pk: list(step.attempts.all()) for step in steps},
        evidence={},
        cases={step.pk: step.open_cases for step in steps if step.open_cases},
        policy=pinned.policy(found.policy_version_id),
        now=clock.now(),
        requests={step.pk: step.open_requests[0] for step in steps if step.open_requests},
        budgets=budgets_at_front(found, steps),
        owners=owners,
    )
    return dict(zip((step.pk for step in steps), explain(records).steps, strict=True))


def _workflow_context(
    found: Workflow, plan: queries.Page[Step], urgent: list[Step], query: QueryDict
) -> dict[str, Any]:
    shown = [*urgent, *plan.rows]
    return {
        "workflow": found,
        "plan": plan,
        "urgent": urgent,
        "counts": step_counts.of_positions(found.pk, {step.position for step in shown}),
        "undone_by": queries.undone_by(shown),
        "progress": workflow_lists.progress_of([found]).get(found.pk, workflow_lists.Progress()),
        "groups": queries.open_groups(found),
        "cases": queries.cases_of(found),
        "requests": queries.requests_of(found),
        "tools": sorted({str(step.tool_version) for step in shown}),
        "trail": queries.audit_trail(found),
        "ended": found.status in WORKFLOW_TERMINAL,
        "following": _with(query, after=plan.following),
    }
