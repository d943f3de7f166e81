"""Every HTTP request is an occasion with a request id, and a change that it was refused is in the audit once.

Whatever refuses (a view, a verb, the login or the CSRF middleware), the answer's status says so here. Refused reads are
not recorded: open pages ask again every few seconds, and a table of which nothing is ever deleted would fill with that.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from checkpoint import occasions
from checkpoint.occasions import Occasion
from checkpoint.people import ANONYMOUS, Actor
from checkpoint.trail import denials

HEADER = "X-Request-ID"
TRACE = "traceparent"
API_PREFIX = "/api/"
_READS = {"GET", "HEAD", "OPTIONS", "TRACE"}
_REFUSED = {401, 403, 404}
_LONGEST_SUBJECT = 200


class OccasionMiddleware:
    """The outermost of ours: what every other one answers passes here."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Gives the answer the request's id."""
        given = request.headers.get(HEADER, "")
        trace = occasions.accepted_trace(request.headers.get(TRACE, ""))
        begun = occasions.begin(lambda: _actor(request), request_id=occasions.accepted_id(given), trace=trace)
        with begun as occasion:
            response = self.get_response(request)
            if _is_refused_change(request, response, occasion):
                _record(request, response, occasion)
        response.headers[HEADER] = occasion.request_id
        return response


def _actor(request: HttpRequest) -> Actor:
    """Whoever the session or token belongs to; what the request's body says counts for nothing (S14)."""
    user = getattr(request, "user", None)
    name = user.get_username() if user is not None and user.is_authenticated else ANONYMOUS
    return Actor(name, "api" if request.path.startswith(API_PREFIX) else "console")


def _is_refused_change(request: HttpRequest, response: HttpResponseBase, occasion: Occasion) -> bool:
    """An address that exists nowhere is nobody's secret; whoever was sent to sign in was refused too."""
    if request.method in _READS or request.resolver_match is None or occasion.denied:
        return False
    return response.status_code in _REFUSED or bool(occasion.refusal)


def _record(request: HttpRequest, response: HttpResponseBase, occasion: Occasion) -> None:
    address = request.resolver_match.url_name if request.resolver_match else None
    denials.record(
        actor=occasion.actor(),
        verb=address or "request",
        subject=request.path[:_LONGEST_SUBJECT],
        reason=occasion.refusal or f"HTTP {response.status_code}",
    )
