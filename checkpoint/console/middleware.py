"""Signed-out visitors and refusals, answered in a form that page and fragment both can show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponseNotAllowed, QueryDict
from django.http.response import HttpResponseBase

from checkpoint import errors, occasions
from checkpoint.console.refusals import refuse
from checkpoint.pages import is_htmx


class SignedInMiddleware(LoginRequiredMiddleware):
    """Everything needs an account. A fragment's request is not redirected: what is typed on the page stays there."""

    def handle_no_permission(  # type: ignore[override]  # the base class promises a redirect
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        """To the login page; for htmx a notice that links there."""
        if is_htmx(request):
            return refuse(request, 401, "You are signed out, and nothing was changed.", sign_in=True)
        occasions.current().refusal = "Nobody is signed in."
        answer: HttpResponseBase = super().handle_no_permission(request, view_func)
        return answer


class StorableQueryMiddleware:
    """Drops NUL from the address's query: no text in the database holds one, and asking for it is an error there."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Changes the query only where it holds a NUL."""
        pairs = [(name, value) for name, values in request.GET.lists() for value in values]
        if any("\0" in name + value for name, value in pairs):
            clean = [(name.replace("\0", ""), value.replace("\0", "")) for name, value in pairs]
            request.GET = QueryDict(urlencode(clean))
        return self.get_response(request)


_STATUS_CODES = {errors.NotFound: 404, errors.Forbidden: 403, errors.FilterInvalid: 400, errors.RecordDamaged: 500}


class RefusalMiddleware:
    """Turns what a view lets through of `errors` into an answer with its status."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Gives an empty refusal of the request's method a page, and leaves any other answer alone."""
        answer = self.get_response(request)
        if not isinstance(answer, HttpResponseNotAllowed):
            return answer
        told = refuse(request, 405, f"It takes {answer['Allow']}, not {request.method}. Nothing was changed.")
        told["Allow"] = answer["Allow"]
        return told

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """Those of _STATUS_CODES; anything else is not this one's business."""
        for kind, status in _STATUS_CODES.items():
            if isinstance(exception, kind):
                return refuse(request, status, str(exception))
        return None
