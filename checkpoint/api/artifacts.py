"""Large things of a workflow: brought, listed, and handed out, each by who sees the workflow."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint import artifacts, queries
from checkpoint.api import paging
from checkpoint.api.bodies import body_of
from checkpoint.api.replies import Keep, once, reply
from checkpoint.api.representations import ArtifactShown
from checkpoint.api.schema import KEY, PROBLEMS, pages_of
from checkpoint.api.uploads import DIGEST, RawBytes, check_digest, chunks
from checkpoint.api.view import ApiView, actor_of, caller
from checkpoint.kept_replies import Reply
from checkpoint.models import Scope
from checkpoint.storage import artifact_downloads

_ANY_BYTES = "application/octet-stream"


class Artifacts(ApiView):
    """The artifacts of a workflow."""

    scopes = {"GET": Scope.READ, "POST": Scope.SUBMIT}
    parser_classes = [RawBytes]

    @extend_schema(
        operation_id="list_artifacts",
        parameters=[OpenApiParameter(paging.AFTER, description="From “next” of the page before.")],
        responses={200: pages_of(ArtifactShown), **PROBLEMS},
    )
    def get(self, request: Request, workflow_id: UUID) -> Response:
        """The oldest first."""
        found = queries.visible_workflow(caller(request), workflow_id)
        page = queries.artifacts_of(found, after=paging.place(request))
        return paging.answer(request, page, lambda row: ArtifactShown(row, context={"request": request}).data)

    @extend_schema(
        operation_id="bring_artifact",
        parameters=[
            KEY,
            OpenApiParameter("name", required=True, description="What it is called, in at most 255 characters."),
            OpenApiParameter(
                DIGEST, location=OpenApiParameter.HEADER, description="sha-256=:…: (RFC 9530), if it is to be checked."
            ),
        ],
        request={_ANY_BYTES: OpenApiTypes.BINARY},
        responses={201: ArtifactShown, **PROBLEMS},
    )
    @once
    def post(self, request: Request, keep: Keep, workflow_id: UUID) -> Reply:
        """The body is the artifact. The same bytes under the same name are the same artifact."""
        check_digest(request, body_of(request).sha256)
        name, kind = request.query_params.get("name", ""), request.content_type or _ANY_BYTES
        stored = artifacts.bring(
            workflow_id, name, kind, chunks(request), actor=actor_of(request), user=caller(request)
        )
        shown = ArtifactShown(stored, context={"request": request}).data
        answer = reply(201, shown, location=shown["url"])
        keep(answer)
        return answer


class OneArtifact(ApiView):
    """What is known of an artifact."""

    scopes = {"GET": Scope.READ}

    @extend_schema(operation_id="read_artifact", responses={200: ArtifactShown, **PROBLEMS})
    def get(self, request: Request, artifact_id: UUID) -> Response:
        """Its name, size and hash; name and media type are what somebody claimed."""
        found = artifacts.visible_artifact(caller(request), artifact_id)
        return Response(ArtifactShown(found, context={"request": request}).data)


class _Bytes(JSONRenderer):
    """Whatever the caller accepts: the bytes are what they are. What it renders itself are refusals."""

    media_type = "*/*"


class ArtifactContent(ApiView):
    """The bytes of an artifact."""

    scopes = {"GET": Scope.READ}
    renderer_classes = [_Bytes]

    @extend_schema(
        operation_id="fetch_artifact",
        responses={(200, _ANY_BYTES): OpenApiResponse(OpenApiTypes.BINARY), **PROBLEMS},
    )
    def get(self, request: Request, artifact_id: UUID) -> HttpResponseBase:
        """Held against the hash: what is damaged is not handed out whole."""
        found = artifacts.visible_artifact(caller(request), artifact_id)
        return artifact_downloads.attachment(request._request, found)
