"""Where everything is: states, waiting questions, attempts by the minute and by tool, workers, the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from checkpoint.models import Ending
from checkpoint.pages import page
from checkpoint.pictures import installation
from checkpoint.pictures.installation import Activity, Waiting
from checkpoint.states import WORKFLOW_TERMINAL

WIDTH, HEIGHT = 600, 90  # units of the drawing of the minutes
_ENDINGS = [Ending.RECEIPT, Ending.REFUSED, Ending.UNKNOWN, Ending.LOST, "running"]


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Everything on one page; each part is read anew every few seconds."""
    states, activity = installation.states(request.user), installation.activity(request.user)
    groups = installation.waiting(request.user, _limits())
    most = max([1, *states.counts.values()])
    context = {
        "states": [
            (status, count, _share(count, most), status in WORKFLOW_TERMINAL) for status, count in states.counts.items()
        ],
        "total": states.total,
        "all_states": states.total < installation.WORKFLOWS_LOOKED_AT,
        "groups": [(group, _share(group.cases + group.requests, _most(groups))) for group in groups],
        "activity": activity,
        "columns": _columns(activity),
        "endings": _ENDINGS,
        "tools": [(tool, [tool.endings.get(ending, 0) for ending in _ENDINGS]) for tool in activity.tools],
        "workers": installation.workers(),
        "health": installation.health(),
        "broker": settings.BROKER_URL.partition(":")[0],
        "limits": installation,
    }
    return page(request, "overview.html", "live", context)


def _limits() -> list[tuple[timedelta, str]]:
    """What is due when: people are reminded, then those on call are told."""
    remind, escalate = settings.CHECKPOINT_REMIND_AFTER, settings.CHECKPOINT_ESCALATE_AFTER
    named = [(timedelta(hours=1), "new"), (remind, "until a reminder"), (escalate, "until it escalates")]
    return sorted((limit, words) for limit, words in named if limit <= max(remind, escalate))


def _most(groups: Sequence[Waiting]) -> int:
    return max([1, *(group.cases + group.requests for group in groups)])


def _share(count: int, most: int) -> int:
    """The length of a bar, of 100; what is not nothing can be seen."""
    return max(2, round(count / most * 100)) if count else 0


def _columns(activity: Activity) -> list[tuple[Any, int, float, float]]:
    """Each minute with its count, its place and its height."""
    step = WIDTH / len(activity.minutes)
    highest = activity.highest
    return [
        (minute, count, round(number * step, 1), round(max(2.0, count / highest * HEIGHT), 1) if count else 0.0)
        for number, (minute, count) in enumerate(activity.minutes)
    ]
