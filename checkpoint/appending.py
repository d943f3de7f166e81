"""An agent goes on with a plan that it left open: it appends steps, or seals it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User

from checkpoint import doorbell, transitions
from checkpoint.agents import agent_waits
from checkpoint.errors import AlreadyEnding, Fault, NotFound, PlanSealed, SubmissionInvalid
from checkpoint.models import Step, Workflow
from checkpoint.people import Actor
from checkpoint.permissions import workflows_visible_to
from checkpoint.planning.documents import Document
from checkpoint.planning.members import Members
from checkpoint.planning.new_steps import BATCH, new_step, take_intents
from checkpoint.planning.plan_steps import PlannedStep, PublishedTool, StepsReader
from checkpoint.states import WORKFLOW_TERMINAL, StepStatus
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes
from checkpoint.workflows import checked_reason, require_right


@dataclass(frozen=True)
class Appended:
    """What was stored: the steps in the plan's order, none where the plan was only sealed."""

    workflow: Workflow
    steps: list[Step]


def no_writing(appended: Appended) -> None:
    """Nothing else belongs to the change."""


@one_transaction
def append(
    *,
    workflow_id: UUID,
    document: Document,
    tools: Mapping[str, PublishedTool],
    actor: Actor,
    user: User | None = None,
    alongside: Callable[[Appended], None] = no_writing,
) -> Appended:
    """Appends steps to a plan that is not sealed, all or none; with `sealed: true` they are its last.

    Args:
        document: `steps` as at submission, and perhaps `sealed`. Positions go on from where the plan ends; arguments
            can refer to the results of any step before.
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.
        alongside: writes what belongs to the change, in its transaction; what it raises undoes both.

    Raises:
        NotFound: there is no such workflow, or the user does not see it.
        Forbidden: the user sees it, but may not submit for its team.
        SubmissionInvalid: every fault of the document.
        AlreadyEnding: the workflow has ended, or is being wound down.
        PlanSealed: the plan is closed.
    """
    workflow, changes = _locked_open(workflow_id, actor, user)
    planned, sealed = _read(document, workflow, tools)
    steps = [new_step(step, workflow, workflow.team) for step in planned]
    Step.objects.bulk_create(steps, batch_size=BATCH)
    take_intents([steps], workflow.team)
    changes.note_workflow(workflow.pk, "append", details={"steps": len(steps), "first": steps[0].name})
    if sealed:
        _close(changes, workflow.pk, reason="")
    return _finished(changes, workflow.pk, steps, alongside)


@one_transaction
def seal(
    *,
    workflow_id: UUID,
    reason: str,
    actor: Actor,
    user: User | None = None,
    alongside: Callable[[Appended], None] = no_writing,
) -> Appended:
    """Closes a plan: no step is appended any more, and once every step is verified the workflow is completed.

    Sealing what is sealed changes nothing. Raises as `append` does, and ActionIncomplete for a reason that is missing
    or too long.
    """
    reason = checked_reason(reason)
    workflow = _visible(workflow_id, user)
    changes = transitions.lock([workflow_id], actor=actor)
    row = changes.workflows[workflow_id]
    if row.sealed:
        appended = Appended(workflow, [])
        alongside(appended)
        return appended
    _require_going_on(changes, workflow_id)
    _close(changes, workflow_id, reason=reason)
    return _finished(changes, workflow_id, [], alongside)


def _locked_open(workflow_id: UUID, actor: Actor, user: User | None) -> tuple[Workflow, Changes]:
    workflow = _visible(workflow_id, user)
    changes = transitions.lock([workflow_id], actor=actor)
    _require_going_on(changes, workflow_id)
    if changes.workflows[workflow_id].sealed:
        raise PlanSealed("The plan is sealed: no step can be appended. Submit what is still to be done as a new one.")
    return workflow, changes


def _visible(workflow_id: UUID, user: User | None) -> Workflow:
    """The account is read again: a right taken away counts at once (S25)."""
    visible = Workflow.objects.all()
    if user is not None:
        user = User.objects.get(pk=user.pk)
        visible = workflows_visible_to(user)
    found = visible.select_related("team").filter(pk=workflow_id).first()
    if found is None:
        raise NotFound(f"There is no workflow {workflow_id} that you may see.")
    if user is not None:
        require_right(user, found.team)
    return found


def _require_going_on(changes: Changes, workflow_id: UUID) -> None:
    row = changes.workflows[workflow_id]
    if row.winding_down or row.status in WORKFLOW_TERMINAL:
        raise AlreadyEnding(f"The workflow is {'being wound down' if row.winding_down else row.status}.")


def _read(
    document: Document, workflow: Workflow, tools: Mapping[str, PublishedTool]
) -> tuple[tuple[PlannedStep, ...], bool]:
    """The steps, held against those that the plan has, and whether they are the last."""
    present = dict(
        Step.objects.filter(workflow=workflow).exclude(status=StepStatus.SUPERSEDED).values_list("name", "position")
    )
    faults: list[Fault] = []
    members = Members(document.value, "", faults)
    members.refuse_reasoning()
    sealed = members.take("sealed", bool, default=False) is True
    reader = StepsReader(tools, json.loads(workflow.input), faults, present)
    steps = reader.read(members.take("steps", list), behind=max(present.values(), default=0))
    members.refuse_the_rest()
    if faults := [*document.faults, *faults]:
        raise SubmissionInvalid(faults)
    return steps, sealed


def _close(changes: Changes, workflow_id: UUID, *, reason: str) -> None:
    changes.workflows[workflow_id].sealed = True
    changes.note_workflow(workflow_id, "seal", reason=reason)


def _finished(
    changes: Changes, workflow_id: UUID, steps: list[Step], alongside: Callable[[Appended], None]
) -> Appended:
    agent_waits.agent_is_back(changes, changes.workflows[workflow_id])
    changes.finish()
    appended = Appended(Workflow.objects.get(pk=workflow_id), steps)
    alongside(appended)
    doorbell.ring_on_commit()
    return appended
