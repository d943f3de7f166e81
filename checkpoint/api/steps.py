"""One step, its evidence, and an agent's change of it."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint import compensations, edits, queries
from checkpoint.api import paging
from checkpoint.api.bodies import body_of
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.representations import EvidenceShown, StepShown, WorkflowShown
from checkpoint.api.schema import COMPENSATION, EDIT, KEY, PROBLEMS, pages_of
from checkpoint.api.view import ApiView, actor_of, caller, versioned
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope, Step
from checkpoint.planning.documents import Document
from checkpoint.planning.members import Members
from checkpoint.workflows import REASON_LIMIT


class OneStep(ApiView):
    """One step."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_step", responses={200: StepShown, **PROBLEMS})
    def get(self, request: Request, step_id: UUID) -> Response:
        """With its whole arguments and its attempts. The ETag is its version."""
        found = queries.visible_step(caller(request), step_id)
        return versioned(request, StepShown(found, context={"request": request}).data, found.version)


class StepEvidence(ApiView):
    """What is known about a step."""

    scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="list_evidence",
        parameters=[OpenApiParameter(paging.AFTER, description="From “next” of the page before.")],
        responses={200: pages_of(EvidenceShown), **PROBLEMS},
    )
    def get(self, request: Request, step_id: UUID) -> Response:
        """Each fact with its source, time and standing, the newest first."""
        found = queries.visible_step(caller(request), step_id)
        page = queries.evidence_page(found, before=paging.place(request))
        return paging.answer(request, page, lambda row: EvidenceShown(row).data)


class StepEdit(ApiView):
    """A change of a step that was not sent."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(operation_id="edit_step", parameters=[KEY], request=EDIT, responses={201: StepShown, **PROBLEMS})
    @once
    def post(self, request: Request, keep: Keep, workflow_id: UUID, name: str) -> Reply:
        """Another step takes its place; what was asked or allowed about the old one ends, and its key is closed."""
        arguments, reason = _edit(request)
        made: list[Reply] = []

        def kept(step: Step) -> None:
            shown = StepShown(queries.visible_step(caller(request), step.pk), context={"request": request}).data
            made.append(reply(201, shown, location=shown["url"]))
            keep(made[0])

        edits.edit_step(
            workflow_id=workflow_id,
            name=name,
            arguments=arguments,
            actor=actor_of(request),
            reason=reason,
            user=caller(request),
            alongside=kept,
        )
        return made[0]


class Compensation(ApiView):
    """A second effect that undoes the first."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(
        operation_id="compensate_step",
        parameters=[KEY],
        request=COMPENSATION,
        responses={201: WorkflowShown, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep, step_id: UUID) -> Reply:
        """A new workflow of one step, asked about and carried out like any other; the same again is the same one."""
        reason, version = _compensation(request)
        made = compensations.request(
            step_id=step_id, step_version=version, actor=actor_of(request), reason=reason, user=caller(request)
        )
        found = queries.visible_workflow(caller(request), made.pk)
        shown = WorkflowShown(found, context={"request": request}).data
        answer = reply(201, shown, location=shown["url"])
        keep(answer)
        return answer


def _compensation(request: Request) -> tuple[str, int]:
    document = body_of(request).document
    faults = list(document.faults)
    members = Members(document.value, "", faults)
    reason, version = members.text("reason", longest=REASON_LIMIT * 4), members.take("step_version", int)
    members.refuse_the_rest()
    if faults:
        raise SubmissionInvalid(faults)
    return reason, version or 0


def _edit(request: Request) -> tuple[Document, str]:
    document, faults = body_of(request).document, list[Fault]()
    members = Members(document.value, "", faults)
    reason = members.text("reason", longest=REASON_LIMIT * 4)
    arguments = members.take("arguments", dict)
    members.refuse_the_rest()
    own = [fault for fault in document.faults if not fault.path.startswith("/arguments")]
    if faults := [*own, *faults]:
        raise SubmissionInvalid(faults)
    inside = [
        Fault(fault.path.removeprefix("/arguments"), fault.message) for fault in document.faults if fault not in own
    ]
    return Document(arguments, inside), reason
