"""What the page of one bulk job shows: as a draft what it would do, and from its start on how far it is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from approvals.bulk import queries, trail
from approvals.bulk.preview import cut_off, preview
from approvals.bulk.selection import PLURAL, counted
from approvals.bulk.states import BulkJobStatus, BulkResult
from approvals.models import BulkJob
from approvals.step_up import Authentication
from checkpoint.identity import authentications
from checkpoint.pages import number
from checkpoint.permissions import ADMINISTER_WORKFLOW

ITEMS_SHOWN = 50


def context(job: BulkJob, request: HttpRequest, *, refusal: str = "", acted: bool = False) -> dict[str, Any]:
    """What the template needs. `acted`: the page answers an action that was carried out."""
    totals = trail.totals(job)
    running_or_draft = job.status in (BulkJobStatus.DRAFT, BulkJobStatus.RUNNING)
    mine = job.person_id == request.user.pk
    return {
        "job": job,
        "address": _address(job, request),
        "what": counted(job.noun, job.count),
        "things": PLURAL[job.noun],
        "totals": totals,
        "left_out": cut_off(job),
        "may_start": mine and job.status == BulkJobStatus.DRAFT,
        "may_abort": running_or_draft and (mine or request.user.has_perm(ADMINISTER_WORKFLOW)),
        "visible": queries.visible_workflow_ids(request.user, job),
        "refusal": refusal,
        "acted": acted,
        **(_draft(job, request) if job.status == BulkJobStatus.DRAFT else _items(job, request)),
    }


def _address(job: BulkJob, request: HttpRequest) -> str:
    """Where the page is looked at again; what answers an action is shown under the action's own address."""
    query = request.GET.urlencode()
    return reverse("bulk_job", args=[job.pk]) + (f"?{query}" if query else "")


def seen(job: BulkJob, request: HttpRequest) -> str:
    """Names everything on the page of a started job that can change."""
    totals = trail.totals(job)
    return f"{job.status}-{totals.done}-{totals.refused}-{totals.moved}-{request.GET.urlencode()}"


def _draft(job: BulkJob, request: HttpRequest) -> dict[str, Any]:
    foreseen = preview(job, Authentication(authentications.last(request)))
    return {"preview": foreseen, "answered": counted(job.noun, len(foreseen.answered))}


def _items(job: BulkJob, request: HttpRequest) -> dict[str, Any]:
    chosen = request.GET.get("result", "")
    found = queries.items(job)
    if chosen in set(BulkResult):
        found = found.filter(result=chosen)
    if after := number(request.GET.get("after")):
        found = found.filter(number__gt=after)
    rows = list(queries.listed(found[: ITEMS_SHOWN + 1]))
    return {
        "rows": rows[:ITEMS_SHOWN],
        "following": rows[ITEMS_SHOWN - 1].item.number if len(rows) > ITEMS_SHOWN else None,
        "chosen": chosen,
        "counts": [(result, getattr(trail.totals(job), result)) for result in BulkResult],
    }
