"""Reads for those who decide: the queue, and one case with all that a decision needs."""

from __future__ import annotations

from uuid import UUID

from django.db.models import BooleanField, F, Func, JSONField, Prefetch, Q, QuerySet, Value
from django.db.models.functions import JSONObject, Left

from checkpoint.errors import NotFound
from checkpoint.models import Attempt, Case, Evidence
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.queries import EVIDENCE_SHOWN, PAGE_SIZE, PREVIEW, Page
from checkpoint.states import CaseStatus

_IS_IRREVERSIBLE = '$[*] ? (@.name == $variant && @.contract.reversibility == "irreversible")'


def cases_visible_to(person: Person) -> QuerySet[Case]:
    """The cases of the workflows that the person sees."""
    return Case.objects.filter(workflow__in=workflows_visible_to(person))


def queue(person: Person, *, after: UUID | None = None) -> Page[Case]:
    """Open cases, those behind case `after`: irreversible effects first, then the oldest.

    Each has `irreversible` and `goal_preview`; findings and payloads stay behind.
    """
    cases = cases_visible_to(person).filter(status=CaseStatus.OPEN).annotate(irreversible=_irreversible())
    last = cases.filter(pk=after).first() if after else None
    if last is not None:
        cases = cases.filter(_behind(last))
    rows = list(
        cases.select_related("step", "step__tool_version", "workflow", "workflow__team")
        .defer("findings", *_PAYLOADS)
        .annotate(goal_preview=Left("workflow__goal", PREVIEW))
        .order_by("-irreversible", "opened_at", "id")[: PAGE_SIZE + 1]
    )
    more = len(rows) > PAGE_SIZE
    return Page(rows[:PAGE_SIZE], rows[PAGE_SIZE - 1].id if more else None)


_PAYLOADS = (
    "step__arguments",
    "step__template",
    "step__tool_version__schema",
    "workflow__goal",
    "workflow__constraints",
    "workflow__input",
)


def _irreversible() -> Func:
    """Whether the contract that the case's step pinned says that the effect cannot be undone."""
    named = JSONObject(variant=F("step__variant"))
    return Func(
        F("step__tool_version__variants"),
        Func(Value(_IS_IRREVERSIBLE), template="%(expressions)s::jsonpath"),
        Func(named, template="%(expressions)s::jsonb", output_field=JSONField()),
        function="jsonb_path_exists",
        output_field=BooleanField(),
    )


def _behind(last: Case) -> Q:
    older = Q(opened_at__gt=last.opened_at) | Q(opened_at=last.opened_at, id__gt=last.id)
    irreversible: bool = getattr(last, "irreversible")  # noqa: B009 (an annotation, unknown to the type checker)
    return Q(irreversible=True) & older | Q(irreversible=False) if irreversible else Q(irreversible=False) & older


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
