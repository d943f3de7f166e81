"""Cases like this one: what else is open about the same trouble, and what was answered to it before.

Alike are cases of the same team with the same reason about the same tool. It holds both ways, so each of two such
cases names the other. Those that are also of the same batch, steps of one workflow at one position, are a group: they
can be decided together, by a bulk job over the list that `group` narrows the queue to. Nothing is stored of a group:
a case is in it as long as it is open.
"""

from __future__ import annotations

from django.db.models import QuerySet

from approvals.inbox.narrowing import Narrowed, batch_of
from checkpoint.models import Case
from checkpoint.states import CaseStatus

SHOWN = 5
SEARCHED = 200  # newest closed cases of the reason, over all teams: the search ends there


def open_ones(case: Case) -> list[Case]:
    """Other open cases, the longest waiting first; at most SHOWN."""
    return list(_alike(case, Case.objects.filter(status=CaseStatus.OPEN)).order_by("opened_at")[:SHOWN])


def group(case: Case) -> Narrowed:
    """What narrows the queue to the open cases of the case's own group."""
    batch = batch_of(case.workflow_id, case.step.position)
    return Narrowed(tool=case.step.tool_version.name, reason=case.reason, batch=batch)


def others_in_group(case: Case) -> int:
    """How many other open cases the group has."""
    return Case.objects.filter(group(case).of_cases, status=CaseStatus.OPEN).exclude(pk=case.pk).count()


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
