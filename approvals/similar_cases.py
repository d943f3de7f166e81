"""Cases like this one: what else is open about the same trouble, and what was answered to it before.

Alike are cases of the same team with the same reason about the same tool. It holds both ways, so each of two such
cases names the other.
"""

from __future__ import annotations

from django.db.models import QuerySet

from checkpoint.models import Case
from checkpoint.states import CaseStatus

SHOWN = 5
SEARCHED = 200  # newest closed cases of the reason, over all teams: the search ends there


def open_ones(case: Case) -> list[Case]:
    """Other open cases, the longest waiting first; at most SHOWN."""
    return list(_alike(case, Case.objects.filter(status=CaseStatus.OPEN)).order_by("opened_at")[:SHOWN])


def answered(case: Case) -> list[Case]:
    """Cases that were closed lately, with what was decided; the newest first, at most SHOWN."""
    closed = Case.objects.exclude(status=CaseStatus.OPEN).filter(reason=case.reason).order_by("-closed_at")
    lately = Case.objects.filter(pk__in=closed.values("pk")[:SEARCHED])
    return list(_alike(case, lately).select_related("decision").order_by("-closed_at")[:SHOWN])


def _alike(case: Case, cases: QuerySet[Case]) -> QuerySet[Case]:
    return (
        cases.filter(
            reason=case.reason,
            step__tool_version__name=case.step.tool_version.name,
            workflow__team=case.workflow.team_id,
        )
        .exclude(pk=case.pk)
        .defer("findings")
    )
