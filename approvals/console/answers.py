"""What the case page offers: the legal answers, each with its consequences and what was typed into its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Q

from approvals import consequences
from approvals.consequences import Situation
from checkpoint.canonical import sha256_hex
from checkpoint.contracts import Contract
from checkpoint.models import Case
from checkpoint.states import CaseReason, Decision, StepStatus

_NOT_RUN = [StepStatus.PLANNED, StepStatus.PREPARED, StepStatus.FAILED]
_HAPPENED = [StepStatus.COMMITTED, StepStatus.VERIFIED]


@dataclass(frozen=True)
class Typed:
    """What a person typed into one answer's form, kept when it is refused.

    Attributes:
        field: the field that the refusal is about, if it is about one.
        accepted: this page is the answer to a decision that was recorded.
    """

    kind: str = ""
    reason: str = ""
    operation_id: str = ""
    field: str = ""
    refusal: str = ""
    accepted: bool = False


@dataclass(frozen=True)
class Answer:
    """One answer as the page offers it."""

    kind: Decision
    title: str
    consequence: str
    warning: str
    takes_operation_id: bool
    typed: Typed


def offered(case: Case, typed: Typed) -> list[Answer]:
    """The answers that the case's reason allows, in the order of its table."""
    situation = _situation(case)
    reason = CaseReason(case.reason)
    return [
        Answer(
            kind=kind,
            title=consequences.title(reason, kind),
            consequence=consequences.sentence(kind, situation),
            warning=consequences.warning(kind, situation),
            takes_operation_id=kind is Decision.CONFIRM,
            typed=typed if typed.kind == kind else Typed(),
        )
        for kind in case.rule.decisions
    ]


def _situation(case: Case) -> Situation:
    others = case.workflow.steps.exclude(pk=case.step_id)
    counted: Mapping[str, int] = others.aggregate(
        waiting=Count("id", filter=Q(status__in=_NOT_RUN)), happened=Count("id", filter=Q(status__in=_HAPPENED))
    )
    return Situation(
        reason=CaseReason(case.reason),
        step=case.step.name,
        contract=contract_of(case),
        attempts=case.step.attempt_count,
        **counted,
    )


def contract_of(case: Case) -> Contract | None:
    """The promises pinned by the case's step; None before a variant was chosen."""
    return case.step.tool_version.contract(case.step.variant) if case.step.variant else None


def arguments_intact(case: Case) -> bool:
    """Whether the arguments shown are those that were hashed when they were written ahead."""
    arguments = case.step.arguments
    return arguments is None or sha256_hex(arguments) == case.step.arguments_hash
