"""Pages of lists: each names the address of the next one, and nothing is counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from checkpoint.queries import Page

AFTER = "after"


def place(request: Request) -> UUID | None:
    """Behind which row the page begins. Raises ParseError where that is no id."""
    text = request.query_params.get(AFTER, "")
    with suppress(ValueError):
        return UUID(text) if text else None
    raise ParseError(f"{AFTER}: this is no id; take the address of the next page from “next”.")


def answer[T](request: Request, page: Page[T], represent: Callable[[T], Any]) -> Response:
    """A page as JSON: `items`, and in `next` the address of the next page or null (RFC 8288: also in Link)."""
    following = None
    if page.following is not None:
        query = {**request.query_params.dict(), AFTER: str(page.following)}
        following = f"{request.path}?{urlencode(query)}"
    response = Response({"items": [represent(row) for row in page.rows], "next": following})
    if following:
        response["Link"] = f'<{following}>; rel="next"'
    return response
