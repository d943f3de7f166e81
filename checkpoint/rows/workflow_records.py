"""What is read of one workflow to say where it is: everything but payloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from checkpoint import clock, queries
from checkpoint.budgets import Policy
from checkpoint.gates import step_rulings
from checkpoint.models import Approval, Attempt, Case, Evidence, Step, Waiver, Workflow
from checkpoint.states import OPEN_REQUESTS, STEP_TERMINAL, CaseStatus
from checkpoint.turns import pinned


@dataclass(frozen=True)
class Records:
    """What an explanation is made of.

    Attributes:
        steps: in the plan's order, with their tool versions.
        attempts: by step, in order.
        evidence: by step, the newest first.
        cases: the open ones, by step, the oldest first.
        requests: the approval that is asked for, or given and not used, by step.
        owners: by step that waits, the step that brings about what both name.
        undone_by: by step, the newest step that undoes its effect.
        waivers: by waived step, why its plan goes on without it.
        budgets: by step, where the policy distinguishes between steps; `policy` holds for the others.
        now: database time of the reading.
    """

    workflow: Workflow
    steps: Sequence[Step]
    attempts: Mapping[UUID, Sequence[Attempt]]
    evidence: Mapping[UUID, Sequence[Evidence]]
    cases: Mapping[UUID, Sequence[Case]]
    policy: Policy
    now: datetime
    requests: Mapping[UUID, Approval] = field(default_factory=dict)
    budgets: Mapping[UUID, Policy] = field(default_factory=dict)
    owners: Mapping[UUID, Step] = field(default_factory=dict)
    undone_by: Mapping[UUID, Step] = field(default_factory=dict)
    waivers: Mapping[UUID, str] = field(default_factory=dict)


def load(workflow: Workflow) -> Records:
    """Reads what `explain` needs, without payloads."""
    found = workflow.steps.select_related("tool_version", "compensates").defer(
        "compensates__arguments", "compensates__template", "template", "arguments", "tool_version__schema"
    )
    steps = list(found.order_by("position", "name", "id"))
    return Records(
        workflow=workflow,
        steps=steps,
        attempts=_by_step(Attempt.objects.filter(step__workflow=workflow).order_by("number")),
        evidence=_by_step(Evidence.objects.filter(step__workflow=workflow).defer("facts").order_by("-id")),
        cases=_by_step(workflow.cases.filter(status=CaseStatus.OPEN).order_by("opened_at")),
        policy=pinned.policy(workflow.policy_version_id),
        now=clock.now(),
        requests={each.step_id: each for each in workflow.approvals.filter(status__in=OPEN_REQUESTS)},
        budgets=budgets_at_front(workflow, steps),
        owners=owners_of(steps),
        undone_by=queries.undone_by(steps),
        waivers=dict(Waiver.objects.filter(step__workflow=workflow).values_list("step_id", "reason")),
    )


def owners_of(steps: Sequence[Step]) -> dict[UUID, Step]:
    """The steps that the waiting ones among these wait for, without payloads."""
    waiting = {step.waits_for_id for step in steps if step.waits_for_id}
    owners = Step.objects.filter(intent__in=waiting).select_related("intent").defer("arguments", "template")
    found = {owner.intent.pk: owner for owner in owners} if waiting else {}
    return {step.pk: found[step.waits_for_id] for step in steps if step.waits_for_id}


def budgets_at_front(workflow: Workflow, steps: Sequence[Step]) -> dict[UUID, Policy]:
    """The budgets of the steps whose turn it is, where the policy distinguishes between steps; else nothing."""
    if not pinned.has_rules(workflow.policy_version_id):
        return {}
    by_id = {step.pk: step for step in steps}
    at_front = workflow.steps.filter(position=front_position(steps), pk__in=by_id).values_list("id", "arguments")
    return {
        step_id: step_rulings.described_budgets(
            workflow.policy_version_id, step_rulings.describe_stored(by_id[step_id], workflow, arguments)
        )
        for step_id, arguments in at_front
    }


def _by_step[Row: (Attempt, Evidence, Case)](rows: Iterable[Row]) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        found.setdefault(row.step_id, []).append(row)
    return found


def front_position(steps: Iterable[Step]) -> int:
    """The position whose steps can run; 0 where every step has ended."""
    return min((step.position for step in steps if step.status not in STEP_TERMINAL), default=0)
