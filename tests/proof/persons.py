"""What a person does in an exploration while the workers have nothing to do.

It happens in the worker's process, so that it is cut anywhere, too; whoever comes after that does what was not done.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals.decisions import decide
from checkpoint import compensations
from checkpoint.models import Case, Step, Workflow
from checkpoint.people import Actor
from checkpoint.states import CaseReason, CaseStatus, Decision, StepStatus, WorkflowStatus

ACTOR = Actor(name="explorer", channel="command")
Person = Callable[[list[UUID]], bool]


def of_run(submitted: list[UUID]) -> QuerySet[Workflow]:
    """The workflows of a run, and those that undo what they did."""
    undoing = Step.objects.filter(compensates__workflow__in=submitted).values("workflow")
    return Workflow.objects.filter(Q(pk__in=submitted) | Q(pk__in=undoing))


def nobody(submitted: list[UUID]) -> bool:
    """Does nothing; persons say whether they did something."""
    return False


def answers_tasks(submitted: list[UUID]) -> bool:
    """Fills in one form that waits."""
    waits = {"reason": CaseReason.HUMAN_TASK, "status": CaseStatus.OPEN, "workflow__in": submitted}
    case = Case.objects.filter(**waits).select_related("step").first()
    if case is None:
        return False
    decide(
        case_id=case.pk, kind=Decision.ANSWER, person=_somebody(), channel="command", reason="asked the books",
        data={"account": "4711"}, step_version=case.step.version, arguments_hash=case.step.arguments_hash,
    )  # fmt: skip
    return True


def has_it_undone(submitted: list[UUID]) -> bool:
    """Asks for the compensation of one step that took effect."""
    step = Step.objects.filter(
        workflow__in=submitted, status=StepStatus.VERIFIED, workflow__status=WorkflowStatus.COMPLETED
    ).first()
    if step is None or compensations.under_way(step) is not None:
        return False
    compensations.request(step_id=step.pk, step_version=step.version, actor=ACTOR, reason="ordered twice")
    return True


def _somebody() -> User:
    return User.objects.filter(is_superuser=True).first() or User.objects.create_superuser("explorer")
