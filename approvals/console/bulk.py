"""Bulk jobs in the console: preparing one from the queue, its preview, its start, how far it is, and its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

from approvals.bulk import jobs, queries
from approvals.bulk.states import BulkJobStatus
from approvals.console import bulk_form, bulk_page, passwords
from approvals.step_up import Authentication
from checkpoint.errors import AuthenticateAgain, CheckpointError, Conflict, DecisionIncomplete, Forbidden
from checkpoint.identity import authentications
from checkpoint.pages import cursor, is_htmx, page

CHANNEL = "console"
_STATUS_CODES: dict[type[CheckpointError], int] = {Conflict: 409, Forbidden: 403, DecisionIncomplete: 422}


@require_http_methods(["GET", "HEAD", "POST"])
def bulk_jobs(request: HttpRequest) -> HttpResponse:
    """The person's jobs, newest first. A POST prepares another one from what was selected in the queue."""
    if request.method == "POST":
        return _prepare(request)
    found = queries.newest_jobs(request.user, before=cursor(request, "before"))
    return page(request, "bulk_jobs.html", "rows", {"found": found})


def _prepare(request: HttpRequest) -> HttpResponse:
    typed = bulk_form.read(request.POST)
    try:
        job = jobs.create(
            person=request.user,  # type: ignore[arg-type]  # the middleware lets nobody in who has no account
            channel=CHANNEL,
            kind=typed.answer,
            selection=typed.selection,
            reason=typed.reason,
            job_id=typed.job_id,
        )
    except (Forbidden, DecisionIncomplete) as refusal:
        context = {"typed": typed.refused(str(refusal)), **bulk_form.offered(request.user)}
        return page(request, "bulk_form.html", "whole", context, status=_status_code(refusal))
    return redirect("bulk_job", job.pk)


@require_safe
def bulk_job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """One job: a draft's preview, or what became of its items so far."""
    return _job_page(request, job_id)


@require_http_methods(["POST", "GET", "HEAD"])
def bulk_start(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The workers begin. The answer to a GET is the job: that is where a reload after a refusal leads."""
    return _act(request, job_id, partial(jobs.start, authentication=Authentication(authentications.last(request))))


@require_http_methods(["POST", "GET", "HEAD"])
def bulk_password(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The person gives their password again, and sees what the job would do then. The answer to a GET is the job."""
    if request.method != "POST":
        return redirect("bulk_job", job_id)
    try:
        passwords.given(request)
    except AuthenticateAgain as refusal:
        return _job_page(request, job_id, refusal=str(refusal), status=403)
    return _job_page(request, job_id, acted=True) if is_htmx(request) else redirect("bulk_job", job_id)


@require_http_methods(["POST", "GET", "HEAD"])
def bulk_abort(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Nothing more is answered."""
    return _act(request, job_id, jobs.abort)


def _act(request: HttpRequest, job_id: UUID, verb: Callable[..., Any]) -> HttpResponse:
    if request.method != "POST":
        return redirect("bulk_job", job_id)
    try:
        verb(job_id=job_id, person=request.user, channel=CHANNEL)
    except (Conflict, Forbidden) as refusal:
        return _job_page(request, job_id, refusal=str(refusal), status=_status_code(refusal))
    if is_htmx(request):
        return _job_page(request, job_id, acted=True)
    return redirect("bulk_job", job_id)


def _job_page(
    request: HttpRequest, job_id: UUID, *, refusal: str = "", acted: bool = False, status: int = 200
) -> HttpResponse:
    job = queries.job_visible_to(request.user, job_id)
    seen = None if job.status == BulkJobStatus.DRAFT else bulk_page.seen(job, request)
    context = bulk_page.context(job, request, refusal=refusal, acted=acted)
    return page(request, "bulk_job.html", "job", context, status=status, seen=seen)


def _status_code(refusal: CheckpointError) -> int:
    return next(code for kind, code in _STATUS_CODES.items() if isinstance(refusal, kind))
