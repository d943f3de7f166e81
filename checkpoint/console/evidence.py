"""One piece of evidence: what it says, beside what was sent."""

from __future__ import annotations

import json
from contextlib import suppress
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from checkpoint import queries
from checkpoint.canonical import sha256_hex
from checkpoint.explaining import comparisons
from checkpoint.pages import page

LONGEST = 64 * 1024  # characters that are shown; the rest can be downloaded


@require_safe
def evidence(request: HttpRequest, evidence_id: UUID) -> HttpResponse:
    """The fact with its source and time, and its members beside the step's arguments."""
    found = queries.visible_evidence(request.user, evidence_id)
    step = queries.visible_step(request.user, found.step_id)
    context = {
        "item": found,
        "step": step,
        "intact": sha256_hex(found.facts) == found.sha256,
        "facts": found.facts[:LONGEST],
        "cut": len(found.facts) > LONGEST,
        "members": _members(step.arguments, found.facts),
    }
    return page(request, "evidence.html", "evidence", context)


def _members(sent: str | None, facts: str) -> list[comparisons.Member]:
    """None where one of the two is not there, or too long to be compared while somebody waits."""
    if sent is None or max(len(sent), len(facts)) > LONGEST:
        return []
    with suppress(ValueError, RecursionError):
        return comparisons.compare(json.loads(sent), json.loads(facts))
    return []
