"""The rows of a planned step: written ahead where its arguments are known, with the intent that holds its key."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from checkpoint.budgets import Policy
from checkpoint.canonical import idempotency_key, intent_key, sha256_hex
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.gates import rulings, step_rulings
from checkpoint.models import Intent, Step, Team, Workflow
from checkpoint.planning.plan_steps import PlannedStep
from checkpoint.states import StepStatus
from checkpoint.turns import intents, pinned

BATCH = 1000  # rows; a statement carries at most 65,535 parameters


def new_step(planned: PlannedStep, workflow: Workflow, team: Team) -> Step:
    """The step, not yet stored."""
    return Step(
        workflow=workflow,
        position=planned.position,
        name=planned.name,
        tool_version_id=planned.tool_version_id,
        template=planned.template,
        intent_name=planned.intent,
        compensates_id=planned.compensates,
        by_agent=pinned.by_agent(planned.tool_version_id),
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
    return {
        "status": StepStatus.PREPARED,
        "variant": planned.variant,
        "arguments": planned.arguments,
        "arguments_hash": sha256_hex(planned.arguments),
        "idempotency_key": _key(planned, planned.arguments, workflow),
    }


def _key(planned: PlannedStep, arguments: str, workflow: Workflow) -> str:
    tool = planned.tool
    if planned.intent:
        return intent_key(team_id=str(workflow.team_id), tool=tool, intent=planned.intent, arguments=arguments)
    return idempotency_key(workflow_id=str(workflow.pk), step_name=planned.name, tool=tool, arguments=arguments)


def named_wish(step: Step) -> intents.Wish:
    """What a step that names its effect, and whose arguments are known, wants."""
    tool = pinned.tool_version(step.tool_version_id).name
    arguments = step.arguments or ""
    return intents.wish(step.pk, tool=tool, name=step.intent_name, key=step.idempotency_key, arguments=arguments)


def new_intent(step: Step, team: Team) -> Intent:
    """What holds the key of a step whose arguments are known and whose effect has no name, not yet stored."""
    return Intent(team=team, owner=step, key=step.idempotency_key, arguments_hash=step.arguments_hash)


def take_intents(planned: Sequence[Sequence[Step]], team: Team) -> None:
    """Takes the intents of the stored steps of several plans whose arguments are known.

    Raises:
        SubmissionInvalid: a step names an intent that it cannot have.
    """
    ready = [step for step in chain.from_iterable(planned) if step.arguments is not None]
    unnamed = (new_intent(step, team) for step in ready if not step.intent_name)
    Intent.objects.bulk_create(unnamed, batch_size=BATCH)
    refused = intents.take((named_wish(step) for step in ready if step.intent_name), team_id=team.pk)
    faults = [
        Fault(f"/steps/{index}/intent", refused[step.pk])
        for steps in planned
        for index, step in enumerate(steps)
        if step.pk in refused
    ]
    if faults:
        raise SubmissionInvalid(faults)
