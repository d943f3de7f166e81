"""Bulk jobs: one answer to many questions, frozen first, then started by who prepared it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.representations import BulkItemShown, BulkJobShown
from approvals.api.schema import BULK_JOB
from approvals.bulk import jobs, queries
from approvals.bulk.selection import Selection
from approvals.decisions import REASON_LIMIT
from approvals.models import BulkItem, BulkJob
from checkpoint.api import paging
from checkpoint.api.bodies import body_of, texts
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.schema import KEY, NOTHING, PROBLEMS, pages_of
from checkpoint.api.view import CHANNEL, ApiView, caller
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope
from checkpoint.planning.members import Members
from checkpoint.queries import PAGE_SIZE, Page
from checkpoint.states import Decision as DecisionKind


class BulkJobs(ApiView):
    """The caller's jobs."""

    scopes = {"GET": Scope.READ, "POST": Scope.DECIDE}

    @extend_schema(
        operation_id="list_bulk_jobs",
        parameters=[OpenApiParameter(paging.AFTER, description="From “next” of the page before.")],
        responses={200: pages_of(BulkJobShown), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """The newest first."""
        page = queries.newest_jobs(caller(request), before=paging.place(request))
        return paging.answer(request, page, lambda job: _shown(request, job))

    @extend_schema(
        operation_id="prepare_bulk_job", parameters=[KEY], request=BULK_JOB, responses={201: BulkJobShown, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep) -> Reply:
        """Freezes what is selected, at the version that it has now. Nothing is answered before it is started."""
        kind, reason, selection = _wanted(request)
        job = jobs.create(person=caller(request), channel=CHANNEL, kind=kind, selection=selection, reason=reason)
        shown = _shown(request, job)
        answer = reply(201, shown, location=shown["url"])
        keep(answer)
        return answer


class OneBulkJob(ApiView):
    """One job."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_bulk_job", responses={200: BulkJobShown, **PROBLEMS})
    def get(self, request: Request, job_id: UUID) -> Response:
        """How far it is."""
        return Response(_shown(request, queries.job_visible_to(caller(request), job_id)))


class BulkItems(ApiView):
    """What a job answers."""

    scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="list_bulk_items",
        parameters=[OpenApiParameter(paging.AFTER, description="From “next” of the page before.")],
        responses={200: pages_of(BulkItemShown), **PROBLEMS},
    )
    def get(self, request: Request, job_id: UUID) -> Response:
        """Each item with what became of it, in their order."""
        job = queries.job_visible_to(caller(request), job_id)
        return paging.answer(request, _items(job, paging.place(request)), lambda item: BulkItemShown(item).data)


class BulkStart(ApiView):
    """The beginning of a job."""

    scopes = {"POST": Scope.DECIDE}

    @extend_schema(
        operation_id="start_bulk_job", parameters=[KEY], request=NOTHING, responses={200: BulkJobShown, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep, job_id: UUID) -> Reply:
        """By who prepared it, once. Each item is answered like a single one, and refused like one."""
        texts(request)
        job = jobs.start(job_id=job_id, person=caller(request), channel=CHANNEL)
        answer = reply(200, _shown(request, job))
        keep(answer)
        return answer


class BulkAbort(ApiView):
    """The end of a job before it is done."""

    scopes = {"POST": Scope.DECIDE}

    @extend_schema(
        operation_id="abort_bulk_job", parameters=[KEY], request=NOTHING, responses={200: BulkJobShown, **PROBLEMS}
    )
    @once
    def post(self, request: Request, keep: Keep, job_id: UUID) -> Reply:
        """Nothing more is answered; what was answered stays."""
        texts(request)
        job = jobs.abort(job_id=job_id, person=caller(request), channel=CHANNEL)
        answer = reply(200, _shown(request, job))
        keep(answer)
        return answer


def _shown(request: Request, job: BulkJob) -> dict[str, Any]:
    shown: dict[str, Any] = dict(BulkJobShown(job, context={"request": request}).data)
    return shown


def _items(job: BulkJob, after: UUID | None) -> Page[BulkItem]:
    found = job.items.order_by("number")
    last = found.filter(pk=after).first() if after else None
    rows = list((found.filter(number__gt=last.number) if last else found)[: PAGE_SIZE + 1])
    return Page(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].pk if len(rows) > PAGE_SIZE else None)


def _wanted(request: Request) -> tuple[DecisionKind, str, Selection]:
    document = body_of(request).document
    faults = list(document.faults)
    members = Members(document.value, "", faults)
    kind = members.text("kind", longest=40)
    reason = members.text("reason", longest=REASON_LIMIT * 4)
    selection = Selection(_ids(members, "cases", faults), _ids(members, "approvals", faults))
    if kind not in set(DecisionKind):
        members.fault("kind", message="is no answer that there is")
    members.refuse_the_rest()
    if faults:
        raise SubmissionInvalid(faults)
    return DecisionKind(kind), reason, selection


def _ids(members: Members, name: str, faults: list[Fault]) -> tuple[UUID, ...]:
    found: list[UUID] = []
    for index, text in enumerate(members.take(name, list, []) or []):
        try:
            found.append(UUID(text))
        except (ValueError, AttributeError, TypeError):
            faults.append(Fault(f"/{name}/{index}", "must be an id, as a string"))
    return tuple(found)
