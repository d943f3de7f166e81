"""The artifacts of a workflow: a list, a look at one, and its bytes."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from checkpoint import artifacts, queries
from checkpoint.errors import NotFound
from checkpoint.pages import cursor, page
from checkpoint.storage import artifact_downloads, artifact_previews
from checkpoint.storage.artifact_previews import LARGEST_PICTURE


@require_safe
def artifacts_of(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """The artifacts that a workflow has, with their sizes and hashes."""
    workflow = queries.visible_workflow(request.user, workflow_id)
    found = queries.artifacts_of(workflow, after=cursor(request, "after"))
    return page(request, "artifacts.html", "rows", {"workflow": workflow, "found": found})


@require_safe
def artifact(request: HttpRequest, artifact_id: UUID) -> HttpResponse:
    """One artifact: what is known of it, and the beginning of what somebody else put there."""
    found = artifacts.visible_artifact(request.user, artifact_id)
    context = {"artifact": found, "preview": artifact_previews.preview(found)}
    return page(request, "artifact.html", "artifact", context)


@require_safe
def content(request: HttpRequest, artifact_id: UUID) -> HttpResponseBase:
    """Its bytes."""
    return artifact_downloads.attachment(request, artifacts.visible_artifact(request.user, artifact_id))


@require_safe
def picture(request: HttpRequest, artifact_id: UUID) -> HttpResponseBase:
    """Its bytes for the page that shows them, if they are a picture."""
    found = artifacts.visible_artifact(request.user, artifact_id)
    if found.size <= LARGEST_PICTURE:
        with artifacts.open_verified(found) as stored:
            media_type = artifact_previews.picture_type(stored.read(16))
        if media_type:
            return artifact_downloads.attachment(request, found, media_type=media_type)
    raise NotFound(f"The artifact {found.pk} is no picture that is shown here.")
