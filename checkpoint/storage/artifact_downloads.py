"""Hands an artifact out in chunks, as an attachment that no browser runs or renders."""

from __future__ import annotations

from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from checkpoint import artifacts
from checkpoint.artifacts import UNKNOWN_TYPE
from checkpoint.events.streamed import streamed
from checkpoint.explaining.hostile_text import plain
from checkpoint.models import Artifact


def attachment(request: HttpRequest, artifact: Artifact, *, media_type: str = UNKNOWN_TYPE) -> StreamingHttpResponse:
    """The artifact's bytes, held against its hash.

    One that is damaged is refused before anything is sent. Where it is too large for that, the stream breaks off before
    its last chunk, and less arrives than Content-Length says.

    Args:
        media_type: only what our own reading of the first bytes says, never what somebody claimed.

    Raises:
        ArtifactMismatch: as `artifacts.chunks_of`.
    """
    chunks = artifacts.chunks_of(artifact)
    body: Any = streamed(chunks) if isinstance(request, ASGIRequest) else chunks
    headers = {
        "Content-Disposition": content_disposition_header(as_attachment=True, filename=plain(artifact.name)),
        "Content-Length": str(artifact.size),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
    }
    return StreamingHttpResponse(body, content_type=media_type, headers=headers)
