"""Static files from the web process itself, so that one command runs everything."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # WhiteNoise has no types
    """WhiteNoise, reading each file at once. They are small, and ASGI can send a synchronous stream only in one piece.

    The length sent is that of what was read: a file that a deployment replaced under a running process is not cut.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """The file, or what its request deserves: not modified, no such method."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file as file:
                body = file.read()
        response = HttpResponse(body, status=int(found.status), headers=dict(found.headers))
        if body:
            response["Content-Length"] = str(len(body))
        return response
