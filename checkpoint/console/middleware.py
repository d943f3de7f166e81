"""Signed-out visitors and refusals, answered in a form that page and fragment both can show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest
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


class RefusalMiddleware:
    """Turns what a view lets through of `errors` into 404 and 403."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Changes nothing about an answer."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """NotFound is 404 and Forbidden 403; anything else is not this one's business."""
        if isinstance(exception, errors.NotFound):
            return refuse(request, 404, str(exception))
        if isinstance(exception, errors.Forbidden):
            return refuse(request, 403, str(exception))
        return None
