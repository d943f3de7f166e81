"""What policies ask of the steps of locked workflows. Where a policy has no rules, this costs nothing."""

from __future__ import annotations

import logging
import uuid

from checkpoint.budgets import Policy
from checkpoint.errors import RecordDamaged
from checkpoint.gates import rulings
from checkpoint.gates.rulings import OnFailure, Ruling, StepDescription
from checkpoint.models import Step, Workflow
from checkpoint.rows.step_rows import StepRow
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.turns import pinned

log = logging.getLogger(__name__)


def describe(workflow: WorkflowRow, row: StepRow) -> StepDescription:
    """The step as a policy sees it."""
    tool_version = pinned.tool_version(row.tool_version_id)
    return rulings.describe(
        tool=tool_version.name,
        variants=tool_version.variants,
        variant=row.variant,
        kind=workflow.kind,
        team=workflow.team,
        arguments=row.arguments,
    )


def describe_stored(step: Step, workflow: Workflow, arguments: str | None) -> StepDescription:
    """As `describe`, for a reader; the arguments are given because most readers leave them behind."""
    return rulings.describe(
        tool=step.tool_version.name,
        variants=step.tool_version.variants,
        variant=step.variant,
        kind=workflow.kind,
        team=workflow.team.slug,
        arguments=arguments,
    )


def ruling(policy_version_id: uuid.UUID, workflow: WorkflowRow, row: StepRow) -> Ruling:
    """What a policy version asks of the step. Raises as `pinned.ruling`."""
    return pinned.ruling(policy_version_id, describe(workflow, row))


def budgets(workflow: WorkflowRow, row: StepRow) -> Policy:
    """How patient the machine is with the step, under the policy that its workflow pins."""
    version = workflow.policy_version_id
    return described_budgets(version, describe(workflow, row)) if pinned.has_rules(version) else pinned.policy(version)


def described_budgets(policy_version_id: uuid.UUID, description: StepDescription) -> Policy:
    """As `budgets`, of a policy that has rules. One that cannot be read starts nothing, but what runs is recorded."""
    try:
        return pinned.ruling(policy_version_id, description).budgets
    except RecordDamaged:
        log.exception("policy version %s cannot be read; its steps have the budgets of none", policy_version_id)
        return Policy()


def on_failure(workflow: WorkflowRow, row: StepRow) -> OnFailure:
    """What becomes of the plan if the step, one of a batch, fails for good. A policy that cannot be read asks."""
    try:
        return ruling(workflow.policy_version_id, workflow, row).batch.on_failure
    except RecordDamaged:
        log.exception("policy version %s cannot be read; what fails under it asks", workflow.policy_version_id)
        return OnFailure.WAIT
