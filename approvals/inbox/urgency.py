"""What comes first among all that people are asked: what cannot be undone, then what waits longest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import BooleanField, Exists, F, Func, JSONField, OuterRef, Q, Value
from django.db.models.functions import JSONObject

from approvals.queries import cases_visible_to
from approvals.request_queries import requests_visible_to
from checkpoint.models import Approval
from checkpoint.permissions import Person

_IS_IRREVERSIBLE = '$[*] ? (@.name == $variant && @.contract.reversibility == "irreversible")'


@dataclass(frozen=True)
class Place:
    """Where a page of the queue begins: behind this question, which may be a case or a request for approval."""

    id: UUID
    irreversible: bool
    asked_at: datetime
    closed_at: datetime | None

    def later(self, asked_at: str) -> Q:
        """Those behind it in the order of urgency; the column says since when a question waits."""
        later = Q(**{f"{asked_at}__gt": self.asked_at}) | Q(**{asked_at: self.asked_at, "id__gt": self.id})
        return (
            Q(irreversible=True) & later | Q(irreversible=False) if self.irreversible else Q(irreversible=False) & later
        )

    @property
    def earlier(self) -> Q:
        """Those that were closed before it."""
        return Q(closed_at__lt=self.closed_at) | Q(closed_at=self.closed_at, id__lt=self.id)


def place(person: Person, question_id: UUID | None) -> Place | None:
    """The place of a question that the person sees; None without one: a list's beginning."""
    if question_id is None:
        return None
    case = cases_visible_to(person).filter(pk=question_id).annotate(irreversible=irreversible())
    request = requests_visible_to(person).filter(pk=question_id).annotate(irreversible=plan_irreversible())
    found = (
        case.values_list("id", "irreversible", "opened_at", "closed_at").first()
        or request.values_list("id", "irreversible", "requested_at", "closed_at").first()
    )
    return Place(*found) if found else None


def irreversible() -> Func:
    """For an annotation: whether the contract that a question's step pinned says that the effect cannot be undone."""
    named = JSONObject(variant=F("step__variant"))
    return Func(
        F("step__tool_version__variants"),
        Func(Value(_IS_IRREVERSIBLE), template="%(expressions)s::jsonpath"),
        Func(named, template="%(expressions)s::jsonb", output_field=JSONField()),
        function="jsonb_path_exists",
        output_field=BooleanField(),
    )


def plan_irreversible() -> Q:
    """As `irreversible`, for a request: also of the other steps of its plan."""
    others = Approval.objects.filter(part_of=OuterRef("pk")).alias(grave=irreversible()).filter(grave=True)
    return Q(irreversible()) | Q(Exists(others))
