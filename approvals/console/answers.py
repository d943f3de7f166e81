"""What the case page offers: the legal answers, each with its consequences and what was typed into its form."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from approvals import consequences, signatures
from approvals.casework.case_work import said
from approvals.consequences import Situation
from approvals.console import task_form
from approvals.console.task_form import TaskField
from approvals.models import Signature
from checkpoint.canonical import sha256_hex
from checkpoint.contracts import Contract
from checkpoint.models import Case
from checkpoint.permissions import Person
from checkpoint.states import CaseReason, Decision, StepStatus

_NOT_RUN = [StepStatus.PLANNED, StepStatus.PREPARED, StepStatus.FAILED]
_HAPPENED = [StepStatus.COMMITTED, StepStatus.VERIFIED]


@dataclass(frozen=True)
class Typed:
    """What a person typed into one form of a page, kept when it is refused.

    Attributes:
        kind: which form: the answer's kind, or the action's name.
        values: the other fields of the form.
        field: the field that the refusal is about, if it is about one.
        accepted: this page is the answer to what was recorded.
    """

    kind: str = ""
    reason: str = ""
    operation_id: str = ""
    values: Mapping[str, str] = dataclasses.field(default_factory=dict)
    field: str = ""
    refusal: str = ""
    accepted: bool = False

    @property
    def other_values(self) -> list[str]:
        """What was typed into the other fields, for a page on which the form itself is gone."""
        return [value for value in self.values.values() if value]


@dataclass(frozen=True)
class Answer:
    """One answer as the page offers it.

    Attributes:
        needed: how many people have to give it.
        given: the signatures of those who have.
        fields: what the form of a task asks for.
        withheld: why this person cannot give it, as a sentence; empty where they can.
    """

    kind: Decision
    title: str
    consequence: str
    warning: str
    takes_operation_id: bool
    typed: Typed
    needed: int
    given: Sequence[Signature]
    withheld: str
    fields: Sequence[TaskField] = ()


def offered(case: Case, person: Person, typed: Typed) -> list[Answer]:
    """The answers that the case's reason and the policy in force allow, in the order of the reason's table.

    Raises:
        DecisionNotAllowed: the policy in force cannot be read.
    """
    situation, signed = _situation(case), signatures.on(case)
    reason, own = CaseReason(case.reason), signatures.of_person(signed, person)
    return [
        Answer(
            kind=kind,
            title=consequences.title(reason, kind),
            consequence=consequences.sentence(kind, situation),
            warning=consequences.warning(kind, situation),
            takes_operation_id=kind is Decision.CONFIRM,
            typed=typed if typed.kind == kind else Typed(),
            needed=rule.needed,
            given=signatures.agreeing(signed, kind, rule),
            withheld=_spent(own) if own else signatures.refusal(rule, person),
            fields=task_form.fields_of(case, typed.values) if kind is Decision.ANSWER else (),
        )
        for kind, rule in signatures.rules_of(case).items()
    ]


def _spent(own: Signature) -> str:
    return f"You answered “{own.kind}” at {said(own.signed_at)}; the policy wants another person as well."


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
        winding_down=case.workflow.winding_down,
        **counted,
    )


def contract_of(case: Case) -> Contract | None:
    """The promises pinned by the case's step; None before a variant was chosen."""
    return case.step.tool_version.contract(case.step.variant) if case.step.variant else None


def arguments_intact(case: Case) -> bool:
    """Whether the arguments shown are those that were hashed when they were written ahead."""
    arguments = case.step.arguments
    return arguments is None or sha256_hex(arguments) == case.step.arguments_hash
