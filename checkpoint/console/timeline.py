"""A workflow as a picture: its plan by positions, and what took how long. The numbers stand in tables behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from checkpoint import queries
from checkpoint.pages import cursor, page
from checkpoint.pictures import plan_pictures, timelines
from checkpoint.pictures.timelines import Line, Span, Timeline
from checkpoint.states import WORKFLOW_TERMINAL

WIDTH = 1000.0  # units of the drawing
_NARROWEST = 3.0
_SHORTEST = 0.01  # seconds; nobody zooms in further
_TICKS = 5


@dataclass(frozen=True)
class Window:
    """The part of the whole time that is drawn, in seconds since the submission."""

    begins: float
    ends: float
    whole: float

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return self.begins <= 0 and self.ends >= self.whole

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.ends - self.begins

    @property
    def ticks(self) -> list[float]:
        """Times at even distances."""
        return [self.begins + self.seconds * number / (_TICKS - 1) for number in range(_TICKS)]

    def moved(self, begins: float, ends: float) -> str:
        """The query of another window, within the whole."""
        length = min(max(ends - begins, _SHORTEST), self.whole)
        start = min(max(begins, 0.0), self.whole - length)
        return "" if length >= self.whole else urlencode({"from": f"{start:.3f}", "to": f"{start + length:.3f}"})

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Where one can go from here."""
        quarter = self.seconds / 4
        moves = [("Closer", self.moved(self.begins + quarter, self.ends - quarter))]
        if not self.is_whole:
            moves += [
                ("Further away", self.moved(self.begins - 2 * quarter, self.ends + 2 * quarter)),
                ("Earlier", self.moved(self.begins - 2 * quarter, self.ends - 2 * quarter)),
                ("Later", self.moved(self.begins + 2 * quarter, self.ends + 2 * quarter)),
                ("All of it", ""),
            ]
        return moves


@dataclass(frozen=True)
class Bar:
    """A span as it is drawn."""

    span: Span
    x: float
    width: float


@require_safe
def timeline(request: HttpRequest, workflow_id: UUID) -> HttpResponse:
    """The picture of the plan, and the timeline of some of its steps."""
    found = queries.visible_workflow(request.user, workflow_id)
    times = timelines.of(found, after=cursor(request, "after"))
    window = _window(request, times)
    context = {
        "workflow": found,
        "ended": found.status in WORKFLOW_TERMINAL,
        "picture": plan_pictures.of(found),
        "times": times,
        "window": window,
        "lines": [(line, _bars(line, times, window)) for line in times.lines],
        "following": urlencode({**request.GET.dict(), "after": str(times.following)}),
    }
    return page(request, "timeline.html", "live", context)


def _window(request: HttpRequest, times: Timeline) -> Window:
    whole = times.seconds
    begins, ends = _seconds(request.GET.get("from")), _seconds(request.GET.get("to"))
    if begins is None or ends is None or not 0 <= begins < ends or begins >= whole:
        return Window(0.0, whole, whole)
    return Window(begins, ends, whole)


def _seconds(text: Any) -> float | None:
    try:
        number = float(text)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _bars(line: Line, times: Timeline, window: Window) -> Sequence[Bar]:
    bars = []
    for span in line.spans:
        begins = (span.begins - times.begins).total_seconds() - window.begins
        ends = begins + span.seconds
        if ends < 0 or begins > window.seconds:
            continue
        left, right = (min(max(at, 0.0), window.seconds) / window.seconds * WIDTH for at in (begins, ends))
        width = max(right - left, _NARROWEST)
        bars.append(Bar(span, round(min(left, WIDTH - width), 1), round(width, 1)))
    return bars
