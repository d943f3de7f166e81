"""What a browser gets when something is refused or broken: what happened, and a way on."""

from __future__ import annotations

import sys

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from checkpoint import occasions
from checkpoint.pages import is_htmx
from checkpoint.transactions import no_connection_free

_TITLES = {
    400: "The request makes no sense",
    401: "You are signed out",
    403: "You may not do this",
    404: "There is no such thing",
    413: "That is too much",
    405: "This address does not do that",
    503: "Too many at once",
    500: "Something broke on our side",
}
_FOR_LACK_OF_RIGHT = {401, 403, 404}


def refuse(request: HttpRequest, status: int, message: str, *, sign_in: bool = False) -> HttpResponse:
    """A page; for htmx a notice at the top of the page, which leaves everything else there as it is."""
    if status in _FOR_LACK_OF_RIGHT:
        occasions.current().refusal = message
    context = {"title": _TITLES[status], "message": message, "sign_in": sign_in}
    if not is_htmx(request):
        return render(request, "refusal.html", context, status=status)
    response = render(request, "refusal.html#notice", context, status=status)
    response["HX-Retarget"], response["HX-Reswap"] = "#notice", "innerHTML"
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400; 413 where more was sent than a form may hold."""
    if isinstance(exception, RequestDataTooBig):
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return refuse(request, 413, f"A form takes at most {limit} bytes. Nothing was changed: go back and shorten it.")
    return refuse(request, 400, "Go back and try again.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 from Django itself."""
    return refuse(request, 403, "Your account lacks the right for this.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form is older than the session, or comes from another site."""
    return refuse(request, 403, "This form is from an earlier session. Load the page again and repeat.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: it does not exist, or one may not see it."""
    return refuse(request, 404, "It does not exist, or you may not see it.")


def server_error(request: HttpRequest) -> HttpResponse:
    """500; 503 where a rush left no connection to the database for this request."""
    if no_connection_free(sys.exception()):
        told = refuse(request, 503, "Nothing was done. Wait a moment, then try again.")
        told["Retry-After"] = "1"
        return told
    return refuse(request, 500, "It was logged. What you did may have been recorded: load the page again to see.")
