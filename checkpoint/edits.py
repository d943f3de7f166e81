"""An agent changes a step that was not sent: another step takes its place, and its key is closed for ever (S23)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from checkpoint import doorbell, transitions
from checkpoint.errors import AlreadyEnding, EditRefused, Fault, NotFound, SubmissionInvalid
from checkpoint.models import AuditEntry, Intent, Step, Workflow
from checkpoint.people import Actor
from checkpoint.permissions import workflows_visible_to
from checkpoint.planning.documents import Document
from checkpoint.planning.new_steps import named_wish, new_intent, new_step
from checkpoint.planning.plan_steps import INTENT_NAME, INTENT_RULE, PlannedStep, PublishedTool, StepsReader
from checkpoint.rows import approval_log, step_rows
from checkpoint.states import WORKFLOW_TERMINAL, ApprovalStatus, StepStatus
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes
from checkpoint.turns import intents, pinned
from checkpoint.workflows import checked_reason, require_right

EDITABLE = (StepStatus.PLANNED, StepStatus.PREPARED)


@dataclass(frozen=True)
class _Edit:
    """What is asked for."""

    workflow_id: UUID
    name: str
    arguments: Document
    actor: Actor
    reason: str
    user: User | None
    alongside: Callable[[Step], None]
    intent: str


def edit_step(
    *,
    workflow_id: UUID,
    name: str,
    arguments: Document,
    actor: Actor,
    reason: str,
    user: User | None = None,
    alongside: Callable[[Step], None] = lambda step: None,
    intent: str = "",
) -> Step:
    """Puts a step with other arguments into the place of one that was not sent, and has it asked about anew.

    The old step ends as superseded; its key is closed, so that the old call is not sent under any name of this plan.
    Whatever was asked or allowed about it, and about the plan that it is part of, ends with it.

    Args:
        arguments: with references to earlier results, as at submission.
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.
        alongside: writes what belongs to the edit, in its transaction; what it raises undoes both.
        intent: what the new step's effect is called; by default, what the old one's was.

    Returns:
        The step that took the place.

    Raises:
        NotFound: no such workflow that the user sees, or no such step in it.
        Forbidden: the user sees the workflow, but may not submit for its team.
        ActionIncomplete: no reason, or it is too long.
        SubmissionInvalid: every fault of the arguments.
        AlreadyEnding: the workflow has ended, or is being wound down.
        EditRefused: the step was sent, nothing would change, or an earlier edit put this very call aside.
    """
    return _edit(_Edit(workflow_id, name, arguments, actor, checked_reason(reason), user, alongside, intent))


@one_transaction
def _edit(wanted: _Edit) -> Step:
    workflow = _workflow(wanted)
    changes = transitions.lock([workflow.pk], actor=wanted.actor)
    row = changes.workflows[workflow.pk]
    if row.winding_down or row.status in WORKFLOW_TERMINAL:
        raise AlreadyEnding(f"The workflow is {'being wound down' if row.winding_down else row.status}.")
    steps = list(Step.objects.filter(workflow=workflow).exclude(status=StepStatus.SUPERSEDED))
    old = next((step for step in steps if step.name == wanted.name), None)
    if old is None:
        raise NotFound(f"The workflow has no step {wanted.name}.")
    if old.status not in EDITABLE:
        raise EditRefused(f"“{old.name}” is {old.status}: only what was not sent can be edited. Abandon it instead.")
    new = new_step(_read(wanted, workflow, steps, old), workflow, workflow.team)
    _check_is_new(old, new)
    _replace(changes, old, new, wanted.reason)
    wanted.alongside(new)
    return new


def _workflow(wanted: _Edit) -> Workflow:
    """The account is read again: a right taken away counts at once (S25)."""
    visible = Workflow.objects.all()
    if wanted.user is not None:
        visible = workflows_visible_to(User.objects.get(pk=wanted.user.pk))
    found = visible.select_related("team").filter(pk=wanted.workflow_id).first()
    if found is None:
        raise NotFound(f"There is no workflow {wanted.workflow_id} that you may see.")
    if wanted.user is not None:
        require_right(User.objects.get(pk=wanted.user.pk), found.team)
    return found


def _read(wanted: _Edit, workflow: Workflow, steps: list[Step], old: Step) -> PlannedStep:
    """The new step, of the same version of the tool; references are held against the other steps."""
    version = pinned.tool_version(old.tool_version_id)
    tool = PublishedTool(version.name, version.pk, version.schema, version.variants)
    faults: list[Fault] = []
    reader = StepsReader({}, json.loads(workflow.input), faults, {step.name: step.position for step in steps})
    if wanted.intent and not INTENT_NAME.fullmatch(wanted.intent):
        faults.append(Fault("/intent", INTENT_RULE))
    intent = wanted.intent or old.intent_name
    planned = reader.read_again(old.name, old.position, tool, wanted.arguments.value, intent)
    own = [Fault(fault.path.removeprefix("/steps/0/arguments"), fault.message) for fault in faults]
    found = [*wanted.arguments.faults, *own]
    if planned is None or found:
        raise SubmissionInvalid(found or [Fault("", "the arguments cannot be read")])
    return planned


def _check_is_new(old: Step, new: Step) -> None:
    if new.template == old.template or (new.idempotency_key and new.idempotency_key == old.idempotency_key):
        raise EditRefused(f"These are the arguments that “{old.name}” has; nothing was changed.")
    closed = Intent.objects.filter(key=new.idempotency_key).select_related("owner").first()
    if new.idempotency_key and closed is not None and closed.owner.workflow_id == new.workflow_id:
        raise EditRefused(f"{_why_closed(closed.owner)} Its key is closed; send other arguments.")


def _why_closed(superseded: Step) -> str:
    entries = AuditEntry.objects.filter(stream_id=superseded.workflow_id, verb="edit").order_by("-seq")
    for text in entries.values_list("text", flat=True):
        entry: dict[str, Any] = json.loads(text)
        if entry["details"]["superseded"] == str(superseded.pk):
            return f"{entry['actor']} put this very call aside at {entry['at'][:19]} UTC: “{entry['reason']}”."
    return "An edit put this very call aside."


def _take_intent(new: Step) -> None:
    if new.arguments is not None and new.intent_name:
        if refused := intents.take([named_wish(new)], team_id=new.workflow.team_id):
            raise EditRefused(f"{refused[new.pk]} Name another intent with the new arguments.")
    elif new.arguments is not None:
        new_intent(new, new.workflow.team).save(force_insert=True)


def _replace(changes: Changes, old: Step, new: Step, reason: str) -> None:
    approval_log.end([old.pk], ApprovalStatus.SUPERSEDED, f"“{old.name}” was edited", now=changes.now)
    changes.move(step_rows.of_ids([old.pk])[old.pk], StepStatus.SUPERSEDED, verb="supersede", reason=reason)
    changes.write_steps()
    new.save(force_insert=True)
    _take_intent(new)
    for row in step_rows.of_workflows([new.workflow_id], EDITABLE):
        # What was asked about together with the old step is asked about anew.
        if row.next_at is not None:
            changes.touch(row).next_at = None
    changes.note(
        step_rows.of_ids([new.pk])[new.pk],
        "edit",
        before=old.arguments_hash,
        after=new.arguments_hash,
        reason=reason,
        details={"step": str(new.pk), "superseded": str(old.pk), "closed_key": old.idempotency_key},
    )
    changes.finish()
    doorbell.ring_on_commit()
