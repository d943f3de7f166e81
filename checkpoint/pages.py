"""How a view answers: the whole page, or for htmx the one part of it that moves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import patch_cache_control, patch_vary_headers

SEEN_HEADER = "HX-PTag"
_LONGEST_NUMBER = 9  # digits; what the database counts with has ten


def is_htmx(request: HttpRequest) -> bool:
    """Whether htmx asks, and so for a part of a page."""
    return request.headers.get("HX-Request") == "true"


def cursor(request: HttpRequest, name: str) -> UUID | None:
    """Where a page of a list begins, from the address; one that is no UUID begins at the beginning."""
    with suppress(ValueError):
        return UUID(request.GET.get(name, ""))
    return None


def number(text: str | None) -> int | None:
    """A whole number from an address or a form; None where it is none, or larger than anything that is counted."""
    text = text or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def is_shown(request: HttpRequest, seen: str) -> bool:
    """Whether htmx asks for a part that the browser shows already. Then `page` answers 204, and needs no context."""
    return is_htmx(request) and request.headers.get(SEEN_HEADER) == seen


def page(
    request: HttpRequest,
    template: str,
    part: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
    seen: str | None = None,
) -> HttpResponse:
    """The page, or its template partial `part` for htmx; 204 where the browser shows that part already.

    With a part comes the number of open questions, which every page's head shows.

    Args:
        seen: names what the part shows, where that is known before it is rendered; by default the hash of its text.
            A part with a form needs one, because a form's CSRF token differs each time.
    """
    if not is_htmx(request):
        return _private(HttpResponse(render_to_string(template, {**context, "seen": seen}, request), status=status))
    if status == 200 and seen is not None and is_shown(request, seen):
        return _private(HttpResponse(status=204))
    text = render_to_string(f"{template}#{part}", {**context, "seen": seen}, request)
    text += render_to_string("nav_review.html", {"fragment": True}, request)
    now = seen if seen is not None else hashlib.sha256(text.encode()).hexdigest()[:16]
    if status == 200 and request.headers.get(SEEN_HEADER) == now:
        return _private(HttpResponse(status=204))
    return _private(HttpResponse(text, status=status, headers={SEEN_HEADER: now}))


def _private(response: HttpResponse) -> HttpResponse:
    """One address answers with page or part, and differently to each person."""
    patch_cache_control(response, private=True, no_cache=True)
    patch_vary_headers(response, ["HX-Request", "Cookie"])
    return response
