"""Workflows: submitting them, reading them, ending them."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint import queries, resuming, workflow_lists, workflows
from checkpoint.api import paging
from checkpoint.api.bodies import JsonDocument, YamlDocument, body_of, texts
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.representations import Submitted, WorkflowInList, WorkflowShown
from checkpoint.api.schema import DOCUMENT, EXPLANATION, IF_MATCH, KEY, PROBLEMS, REASON, RESUMPTION, pages_of
from checkpoint.api.view import ApiView, actor_of, caller, require_match, team_named, versioned
from checkpoint.explaining.explanations import explain
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope, Workflow
from checkpoint.planning.plans import parse_plan
from checkpoint.rows.workflow_records import load
from checkpoint.states import WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflow_lists import WorkflowFilter
from checkpoint.workflows import REASON_LIMIT

_LONGEST_SEARCH = 200


class Workflows(ApiView):
    """The workflows of the caller's teams."""

    scopes = {"GET": Scope.READ, "POST": Scope.SUBMIT}
    parser_classes = [JsonDocument, YamlDocument]

    @extend_schema(
        operation_id="list_workflows",
        parameters=[
            OpenApiParameter("status", enum=list(WorkflowStatus)),
            OpenApiParameter("kind"),
            OpenApiParameter("team"),
            OpenApiParameter("reference", description="What its caller calls it; at most one of a team."),
            OpenApiParameter("asked", enum=["1"], description="Only those about which people are asked something."),
            OpenApiParameter("search", description="Part of the goal or kind, or the end of an id."),
            OpenApiParameter(paging.AFTER, description="From “next” of the page before."),
        ],
        responses={200: pages_of(WorkflowInList), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """The newest first."""
        page = workflow_lists.workflow_page(caller(request), _narrowed(request), before=paging.place(request))
        return paging.answer(request, page, lambda row: WorkflowInList(row, context={"request": request}).data)

    @extend_schema(
        operation_id="submit_workflow",
        parameters=[KEY, OpenApiParameter("team", description="The team that owns it; needed by who is in several.")],
        request=DOCUMENT,
        responses={201: Submitted, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep) -> Reply:
        """Stores a workflow, complete and ready to run, or says every fault of the document."""
        team = team_named(request)
        plan = parse_plan(body_of(request).document, newest_tools(team))
        made: list[Reply] = []

        def kept(stored: list[Workflow]) -> None:
            made.append(_submitted(stored[0], len(plan.steps)))
            keep(made[0])

        workflows.submit_many([plan], team=team, actor=actor_of(request), user=caller(request), alongside=kept)
        return made[0]


class OneWorkflow(ApiView):
    """One workflow."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_workflow", responses={200: WorkflowShown, **PROBLEMS})
    def get(self, request: Request, workflow_id: UUID) -> Response:
        """Without its input. The ETag is its version."""
        found = queries.visible_workflow(caller(request), workflow_id)
        return versioned(request, WorkflowShown(found, context={"request": request}).data, found.version)


class Explanation(ApiView):
    """Where a workflow is."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="explain_workflow", responses={200: EXPLANATION, **PROBLEMS})
    def get(self, request: Request, workflow_id: UUID) -> Response:
        """What is done and on which evidence, what is uncertain, what is asked, and what happens next and when."""
        found = queries.visible_workflow(caller(request), workflow_id)
        return Response(dataclasses.asdict(explain(load(found))))


class Abandonment(ApiView):
    """The end of a workflow before it is done."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(
        operation_id="abandon_workflow",
        parameters=[KEY, IF_MATCH],
        request=REASON,
        responses={200: WorkflowShown, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep, workflow_id: UUID) -> Reply:
        """Nothing new starts, what is in the air is settled, and what did happen stays listed."""
        reason = texts(request, reason=REASON_LIMIT * 4)["reason"]
        require_match(request, queries.visible_workflow(caller(request), workflow_id).version)
        workflows.abandon(workflow_id=workflow_id, actor=actor_of(request), reason=reason, user=caller(request))
        found = queries.visible_workflow(caller(request), workflow_id)
        answer = reply(200, WorkflowShown(found, context={"request": request}).data)
        keep(answer)
        return answer


class Resumption(ApiView):
    """The agent goes on."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(
        operation_id="resume_workflow", parameters=[KEY], request=RESUMPTION, responses={200: WorkflowShown, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep, workflow_id: UUID) -> Reply:
        """Names the version of its prompt; what another one does to steps that were not sent, the policy says."""
        version = texts(request, prompt_version=resuming.PROMPT_LIMIT * 4)["prompt_version"]
        resuming.resume(workflow_id=workflow_id, prompt_version=version, actor=actor_of(request), user=caller(request))
        found = queries.visible_workflow(caller(request), workflow_id)
        answer = reply(200, WorkflowShown(found, context={"request": request}).data)
        keep(answer)
        return answer


def _narrowed(request: Request) -> WorkflowFilter:
    query = request.query_params
    return WorkflowFilter(
        status=query.get("status", ""),
        kind=query.get("kind", ""),
        team=query.get("team", ""),
        asked=query.get("asked") == "1",
        search=query.get("search", "")[:_LONGEST_SEARCH],
        reference=query.get("reference", "")[:_LONGEST_SEARCH],
    )


def _submitted(workflow: Workflow, steps: int) -> Reply:
    address = reverse("api:workflow", args=[workflow.pk])
    content: dict[str, Any] = {"id": workflow.pk, "url": address, "status": workflow.status, "steps": steps}
    return reply(201, content, location=address)
