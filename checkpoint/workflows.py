"""Public verbs on workflows: submitting them, and ending them before they are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError

from checkpoint import audit, clock, doorbell, reasons, transitions
from checkpoint.errors import ActionIncomplete, AlreadyEnding, Forbidden, NotFound, ReferenceTaken
from checkpoint.models import AuditEntry, PolicyVersion, Step, Team, Workflow
from checkpoint.people import Actor
from checkpoint.permissions import (
    ADMINISTER_WORKFLOW,
    SUBMIT_WORKFLOW,
    Person,
    require,
    teams_of,
    teams_visible_to,
    workflows_visible_to,
)
from checkpoint.planning.new_steps import BATCH, new_step, take_intents
from checkpoint.planning.plans import Plan
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.states import WORKFLOW_TERMINAL
from checkpoint.transactions import one_transaction, require_transaction


def submit(plan: Plan, *, team: Team, actor: Actor, user: User | None = None) -> Workflow:
    """Stores a workflow, complete and ready to run, and rings the doorbell.

    Steps whose arguments are complete are written ahead at once: key fixed, intent taken. The others follow when the
    results they refer to are there. Raises as `submit_many` does.
    """
    return submit_many([plan], team=team, actor=actor, user=user)[0]


@one_transaction
def submit_many(
    plans: Sequence[Plan],
    *,
    team: Team,
    actor: Actor,
    user: User | None = None,
    alongside: Callable[[list[Workflow]], None] = lambda stored: None,
) -> list[Workflow]:
    """Stores several workflows, all or none.

    Args:
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.
        alongside: writes what belongs to the submission, in its transaction; what it raises undoes both.

    Raises:
        NotFound: the user does not see the team.
        Forbidden: the user sees the team but may not submit for it.
        ReferenceTaken: the team has a workflow of that reference.
        SubmissionInvalid: a step names an intent that stands for other arguments, or that is closed.
    """
    if user is not None:
        require_right(user, team)
    stored = store(plans, team=team, actor=actor, user=user, at=clock.now())
    alongside(stored)
    return stored


def store(
    plans: Sequence[Plan], *, team: Team, actor: Actor, user: User | None, at: datetime, **details: str
) -> list[Workflow]:
    """As `submit_many`, inside the transaction of a verb that has asked about rights; `details` go into the audit."""
    require_transaction()
    policy = PolicyVersion.objects.order_by("-number")[0]
    workflows = _insert([_workflow(plan, team, policy, user, at) for plan in plans])
    pairs = zip(plans, workflows, strict=True)
    planned = [[new_step(step, workflow, team) for step in plan.steps] for plan, workflow in pairs]
    Step.objects.bulk_create(chain.from_iterable(planned), batch_size=BATCH)
    take_intents(planned, team)
    _audit(workflows, [len(steps) for steps in planned], actor, at, details)
    doorbell.ring_on_commit()
    return workflows


def _insert(workflows: list[Workflow]) -> list[Workflow]:
    """Who comes second with a reference, in the same moment too, is told so by the index."""
    try:
        return Workflow.objects.bulk_create(workflows)
    except IntegrityError as error:
        if "workflow_reference_once" not in str(error):
            raise
        named = ", ".join(workflow.reference for workflow in workflows if workflow.reference)
        raise ReferenceTaken(
            f"The team has a workflow with this reference already ({named}): go on with that one, or name another."
        ) from error


@one_transaction
def abandon(*, workflow_id: UUID, actor: Actor, reason: str, user: User | None = None) -> Workflow:
    """Winds a workflow down: nothing new starts, what is in the air is settled, and what did happen stays listed.

    It ends at once where nothing is in the air (DESIGN.md section 2). The same person repeating it changes nothing.

    Args:
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.

    Raises:
        NotFound: there is none, or the user does not see it.
        Forbidden: the user sees it, but neither submitted it nor administers workflows.
        ActionIncomplete: no reason, or it is too long.
        AlreadyEnding: it has ended, or somebody else is winding it down; the message says who.
    """
    reason = checked_reason(reason)
    if user is not None:
        user = User.objects.get(pk=user.pk)  # read again: a right that was taken away counts at once (S25)
        require_say(user, workflow_id, action="wind it down")
    changes = transitions.lock([workflow_id], actor=actor)
    if workflow_id not in changes.workflows:
        raise NotFound(f"There is no workflow {workflow_id}.")
    row = changes.workflows[workflow_id]
    if row.winding_down or row.status in WORKFLOW_TERMINAL:
        _accept_repetition(row, actor)
    else:
        row.winding_down = True
        changes.note_workflow(workflow_id, "wind_down", before=row.status, reason=reason)
        changes.finish()
        doorbell.ring_on_commit()
    return Workflow.objects.get(pk=workflow_id)


def may_abandon(person: Person, workflow: Workflow) -> bool:
    """Whether this person, who sees the workflow, may wind it down."""
    return workflow.submitted_by_id == person.pk or person.has_perm(ADMINISTER_WORKFLOW)


def require_say(user: User, workflow_id: UUID, *, action: str) -> None:
    """Raises NotFound or Forbidden as `abandon` does. `action` completes "… can"."""
    workflow = workflows_visible_to(user).filter(pk=workflow_id).first()
    if workflow is None:
        raise NotFound(f"There is no workflow {workflow_id} that you may see.")
    if not may_abandon(user, workflow):
        raise Forbidden(
            f"You may see this, but only who submitted a workflow, or an administrator, can {action}."
            f" Ask one for “{ADMINISTER_WORKFLOW}”."
        )


def checked_reason(reason: str) -> str:
    reason = reason.strip()
    wanted = f"say in at most {REASON_LIMIT} characters why; it is kept in the audit trail."
    if found := reasons.problem(reason, wanted=wanted, limit=REASON_LIMIT):
        raise ActionIncomplete("reason", found)
    return reason


def _accept_repetition(row: WorkflowRow, actor: Actor) -> None:
    """Raises AlreadyEnding unless it was this actor who began to wind the workflow down."""
    begun = AuditEntry.objects.filter(stream_id=row.id, verb="wind_down").order_by("-seq").first()
    if begun is not None and begun.actor == actor.name:
        return
    state = f"The workflow is {row.status}" if row.status in WORKFLOW_TERMINAL else "The workflow is being wound down"
    by = f"; {begun.actor} began it at {begun.at:%Y-%m-%d %H:%M:%S} UTC" if begun is not None else ""
    raise AlreadyEnding(f"{state}{by}.")


def require_right(user: User, team: Team) -> None:
    """Raises NotFound or Forbidden as `submit_many` does."""
    if not teams_visible_to(user).filter(pk=team.pk).exists():
        raise NotFound(f"There is no team {team.slug} that you may see.")
    require(user, SUBMIT_WORKFLOW, action="submit workflows")
    if not user.is_superuser and not teams_of(user).filter(pk=team.pk).exists():
        raise Forbidden(f"You may submit workflows for your own teams only, and {team.slug} is not one of them.")


REASON_LIMIT = 4000  # characters


def _workflow(plan: Plan, team: Team, policy: PolicyVersion, user: User | None, at: datetime) -> Workflow:
    return Workflow(
        team=team,
        kind=plan.kind,
        reference=plan.reference,
        goal=plan.goal,
        constraints=list(plan.constraints),
        input=plan.input,
        input_hash=plan.input_hash,
        prompt_version=plan.prompt_version,
        policy_version=policy,
        sealed=plan.sealed,
        agent_seconds=plan.agent_deadline,
        wake_at=at,
        submitted_by=user,
        created_at=at,
        updated_at=at,
    )


def _audit(
    workflows: Sequence[Workflow], steps: Sequence[int], actor: Actor, at: datetime, more: dict[str, str]
) -> None:
    audit.open_streams([audit.workflow_stream(workflow.pk) for workflow in workflows])
    entries = [
        audit.Entry(
            stream=workflow.pk,
            actor=actor,
            verb="submit",
            subject="workflow",
            after=workflow.status,
            details={
                "input_hash": workflow.input_hash,
                "policy": workflow.policy_version.number,
                "steps": count,
                **more,
            },
        )
        for workflow, count in zip(workflows, steps, strict=True)
    ]
    audit.append(entries, at=at)
