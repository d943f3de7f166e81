"""Reads for those who decide: which cases they see, and one case with all that a decision needs."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.db.models.functions import Left

from checkpoint.errors import NotFound
from checkpoint.models import Attempt, Case, Evidence
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.queries import EVIDENCE_SHOWN, PREVIEW
from checkpoint.states import CaseStatus


def cases_visible_to(person: Person) -> QuerySet[Case]:
    """The cases of the workflows that the person sees."""
    return Case.objects.filter(workflow__in=workflows_visible_to(person))


def visible_case(person: Person, case_id: UUID) -> Case:
    """One case with its step, attempts, newest evidence (`step.newest_evidence`) and decision. Raises NotFound."""
    evidence = Evidence.objects.defer("facts").annotate(preview=Left("facts", PREVIEW)).order_by("-id")
    found = (
        cases_visible_to(person)
        .select_related("step", "step__tool_version", "workflow", "workflow__team", "decision")
        .defer("workflow__input", "step__tool_version__schema")
        .prefetch_related(
            Prefetch("step__attempts", Attempt.objects.select_related("worker").order_by("number")),
            Prefetch("step__evidence", evidence[:EVIDENCE_SHOWN], to_attr="newest_evidence"),
        )
    )
    try:
        return found.get(pk=case_id)
    except Case.DoesNotExist:
        raise NotFound(f"There is no case {case_id} that you may see.") from None


def open_case_of_step(case: Case) -> Case | None:
    """Another open question about the same step: what followed from a decision may be the next question."""
    others = Case.objects.filter(step=case.step_id, status=CaseStatus.OPEN).exclude(pk=case.pk)
    return others.defer("findings").order_by("-id").first()
