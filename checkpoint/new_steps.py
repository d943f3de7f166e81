"""The rows of a planned step: written ahead where its arguments are known, with the intent that holds its key."""

from __future__ import annotations

from checkpoint import pinned, rulings, step_rulings
from checkpoint.canonical import idempotency_key, sha256_hex
from checkpoint.decide import Policy
from checkpoint.models import Intent, Step, Team, Workflow
from checkpoint.plan_steps import PlannedStep
from checkpoint.states import StepStatus


def new_step(planned: PlannedStep, workflow: Workflow, team: Team) -> Step:
    """The step, not yet stored."""
    return Step(
        workflow=workflow,
        position=planned.position,
        name=planned.name,
        tool_version_id=planned.tool_version_id,
        template=planned.template,
        attempts_allowed=_budgets(planned, workflow, team).max_attempts,
        **_written_ahead(planned, workflow),
    )


def _budgets(planned: PlannedStep, workflow: Workflow, team: Team) -> Policy:
    """The step's own where its arguments are known; otherwise they are set with the arguments."""
    policy_version_id = workflow.policy_version_id
    if planned.arguments is None or not pinned.has_rules(policy_version_id):
        return pinned.policy(policy_version_id)
    variants = pinned.tool_version(planned.tool_version_id).variants
    description = rulings.describe(
        tool=planned.tool, variants=variants, variant=planned.variant,
        kind=workflow.kind, team=team.slug, arguments=planned.arguments,
    )  # fmt: skip
    return step_rulings.described_budgets(policy_version_id, description)


def _written_ahead(planned: PlannedStep, workflow: Workflow) -> dict[str, str]:
    if planned.arguments is None:
        return {"status": StepStatus.PLANNED}
    key = idempotency_key(
        workflow_id=str(workflow.pk), step_name=planned.name, tool=planned.tool, arguments=planned.arguments
    )
    return {
        "status": StepStatus.PREPARED,
        "variant": planned.variant,
        "arguments": planned.arguments,
        "arguments_hash": sha256_hex(planned.arguments),
        "idempotency_key": key,
    }


def new_intent(step: Step, team: Team) -> Intent:
    """What holds the key of a step whose arguments are known, not yet stored."""
    return Intent(team=team, owner=step, key=step.idempotency_key, arguments_hash=step.arguments_hash)
