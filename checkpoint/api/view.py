"""What every view of the API has in common."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import User
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from checkpoint.api.problems import PreconditionFailed
from checkpoint.errors import ActionIncomplete
from checkpoint.models import Team
from checkpoint.people import Actor
from checkpoint.permissions import teams_of, teams_visible_to

CHANNEL = "api"


class ApiView(APIView):
    """A view; `scopes` names the scope that a token needs for each method."""

    scopes: ClassVar[dict[str, str]] = {}

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Answers differ by account, and are kept by nobody between."""
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "private, no-cache")
        return final


def caller(request: Request) -> User:
    """The account that calls."""
    assert isinstance(request.user, User)  # HasScope lets nobody else in
    return request.user


def actor_of(request: Request) -> Actor:
    """The account as the audit names it."""
    return Actor(caller(request).get_username(), CHANNEL)


def etag(version: int) -> str:
    """An entity's version as ETag and If-Match carry it (RFC 9110, 8.8.3)."""
    return f'"{version}"'


def versioned(request: Request, content: Any, version: int) -> Response:
    """The content with its ETag; 304 where If-None-Match says that the caller has it."""
    return tagged(request, content, str(version))


def tagged(request: Request, content: Any, name: str) -> Response:
    """As `versioned`, for content that something else than a number names."""
    tag = f'"{name}"'
    named = [each.strip() for each in request.headers.get("If-None-Match", "").split(",")]
    response = Response(status=304) if tag in named else Response(content)
    response["ETag"] = tag
    return response


def require_match(request: Request, version: int) -> None:
    """Raises PreconditionFailed where If-Match names other versions than this one; without the header nothing is asked.

    It says what the caller has not seen. What changes between this and the verb's lock, the verb's own guards refuse.
    """
    header = request.headers.get("If-Match", "").strip()
    if header and header != "*" and etag(version) not in [each.strip() for each in header.split(",")]:
        raise PreconditionFailed(f"The version is {version} now, and not what If-Match names. Read it again.")


def team_named(request: Request) -> Team:
    """The team that the address names, else the caller's only one."""
    slug, own = request.query_params.get("team", ""), list(teams_of(caller(request))[:2])
    if not slug and len(own) == 1:
        return own[0]
    found = teams_visible_to(caller(request)).filter(slug=slug).first()
    if found is None:
        known = ", ".join(teams_of(caller(request)).order_by("slug").values_list("slug", flat=True)[:20])
        raise ActionIncomplete("team", f"name one of your teams in the address, ?team=…; they are: {known or 'none'}.")
    return found
