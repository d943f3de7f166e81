"""Undoing an effect: a new step in a workflow of its own, which points at the step whose effect it undoes.

Compensation is not rollback (DESIGN.md section 3): the old step stays verified, its workflow stays ended, and the new
step has its own key, approval, attempts, verification and, if it fails, its own case. After a crash it is a step like
any other; before the commit of the request nothing of it exists.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User

from checkpoint import doorbell, tool_versions, transitions, workflows
from checkpoint.canonical import canonical, sha256_hex
from checkpoint.contracts import Compensation, Reversibility
from checkpoint.errors import CompensationRefused, NotFound, ReferenceUnresolved, StaleView, SubmissionInvalid
from checkpoint.models import AuditEntry, EvidenceKind, Step, Workflow
from checkpoint.people import Actor
from checkpoint.planning import references
from checkpoint.planning.argument_schemas import match_variant, prepare_arguments
from checkpoint.planning.plan_steps import PlannedStep, PublishedTool
from checkpoint.planning.plans import Plan
from checkpoint.rows import statements, step_rows
from checkpoint.states import UNSETTLED, WORKFLOW_TERMINAL, StepStatus
from checkpoint.transactions import one_transaction

KIND = "compensation"
THE_EFFECT = "effect"  # what a declared compensation calls the result of the step that is undone
_LOCK_INTENT = "SELECT FROM checkpoint_intent WHERE owner_id = %(owner)s FOR NO KEY UPDATE"
_CANNOT = {
    Reversibility.NONE_NEEDED: "It changed nothing that would have to be undone.",
    Reversibility.IRREVERSIBLE: "Its tool says that this effect cannot be undone.",
    Reversibility.COMPENSABLE: "It can be undone, but its tool does not say by which call: a person has to do it.",
}


@dataclass(frozen=True)
class Undoing:
    """The call that would undo a step's effect, as it would be stored and sent."""

    tool: PublishedTool
    arguments: str
    variant: str


@one_transaction
def request(*, step_id: UUID, step_version: int, actor: Actor, reason: str, user: User | None = None) -> Workflow:
    """Has a step's effect undone: by a new workflow of one step, which is asked about and carried out like any other.

    The same person asking again with the same words gets the same workflow.

    Args:
        step_version: the step's version that the person saw.
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.

    Raises:
        NotFound: no such step that the user sees.
        Forbidden: the user sees it, but neither submitted its workflow nor administers workflows.
        ActionIncomplete: no reason, or it is too long.
        StaleView: the step has changed since.
        CompensationRefused: nothing took effect, it is not settled, it cannot be undone, or it was asked for before: by
            somebody else, or with another reason, and then the message says what stands.
    """
    reason = workflows.checked_reason(reason)
    workflow_id = _workflow_of(step_id)
    if user is not None:
        user = User.objects.get(pk=user.pk)  # read again: a right that was taken away counts at once (S25)
        workflows.require_say(user, workflow_id, action="have undone what it did")
    changes = transitions.lock([workflow_id], actor=actor)
    # Who names the same intent takes its receipt under this lock, and not once the effect is being undone.
    statements.fetch(_LOCK_INTENT, owner=step_id)
    step = _step(step_id)
    if (begun := under_way(step)) is not None:
        return _accept_repetition(begun, actor, reason)
    if step.version != step_version:
        raise StaleView(f"“{step.name}” has changed since it was shown; look at it again.")
    plan = _plan(step, foresee(step))
    details = {"compensates": str(step.pk), "of_workflow": str(workflow_id), "because": reason}
    (made,) = workflows.store([plan], team=step.workflow.team, actor=actor, user=user, at=changes.now, **details)
    row = step_rows.of_ids([step.pk])[step.pk]
    changes.note(row, "request_compensation", reason=reason, details={"workflow": str(made.pk)})
    changes.finish()
    doorbell.ring_on_commit()
    return made


def foresee(step: Step) -> Undoing:
    """The call that `request` would have made.

    Raises:
        CompensationRefused: as `request`.
    """
    compensation = _declared(step)
    tool = tool_versions.newest_tools().get(compensation.tool)
    if tool is None:
        raise CompensationRefused(f"No worker has published {compensation.tool}, which undoes it. Start one that has.")
    try:
        value = references.resolve(compensation.arguments, json.loads(step.arguments or "{}"), _result(step))
        arguments = prepare_arguments(tool.schema, value)
        variant = match_variant(tool.variants, json.loads(arguments))
    except (ReferenceUnresolved, SubmissionInvalid) as error:
        raise CompensationRefused(f"The call that undoes it cannot be made of what is known: {error}") from error
    return Undoing(tool, arguments, variant)


def under_way(step: Step) -> Step | None:
    """The step that undoes this one, did, or may have; one that is proved to have had no effect does not count."""
    for asked in Step.objects.filter(compensates=step).select_related("workflow").order_by("-id"):
        ended = asked.status in (StepStatus.ABANDONED, StepStatus.SUPERSEDED)
        if not ended or asked.attempts.exclude(applied=False).exists():
            return asked
    return None


def declares_how(step: Step) -> bool:
    """Whether the step took effect and its tool says how that is undone."""
    return step.status == StepStatus.VERIFIED and step.tool_version.contract(step.variant).compensation is not None


def _declared(step: Step) -> Compensation:
    if step.status in UNSETTLED:
        raise CompensationRefused(f"“{step.name}” is {step.status}: what became of its call is not settled yet.")
    if step.status != StepStatus.VERIFIED:
        raise CompensationRefused(f"“{step.name}” is {step.status}: nothing took effect that could be undone.")
    assert step.receipt is not None
    if step.receipt.kind == EvidenceKind.INTENT:
        owner = step.receipt.source.partition(": ")[0]
        raise CompensationRefused(f"The effect is that of {owner}, which names the same intent: undo it there.")
    contract = step.tool_version.contract(step.variant)
    if contract.compensation is None:
        raise CompensationRefused(_CANNOT[contract.reversibility])
    if step.workflow.status not in WORKFLOW_TERMINAL and not step.workflow.winding_down:
        raise CompensationRefused("The workflow still goes on and may build on this. Wind it down first.")
    return contract.compensation


def _result(step: Step) -> dict[str, object]:
    assert step.receipt is not None
    if sha256_hex(step.receipt.facts) != step.receipt.sha256 or sha256_hex(step.arguments or "") != step.arguments_hash:
        raise CompensationRefused("What is stored of the step does not match its hash, so no call is made of it.")
    return {THE_EFFECT: {"operation_id": step.operation_id or None, "facts": json.loads(step.receipt.facts)}}


def _workflow_of(step_id: UUID) -> UUID:
    found = Step.objects.filter(pk=step_id).values_list("workflow_id", flat=True).first()
    if found is None:
        raise NotFound(f"There is no step {step_id} that you may see.")
    return found


def _step(step_id: UUID) -> Step:
    return Step.objects.select_related("workflow__team", "tool_version", "receipt").get(pk=step_id)


def _accept_repetition(begun: Step, actor: Actor, reason: str) -> Workflow:
    """Raises CompensationRefused unless it was this actor who asked, with these words."""
    asked = AuditEntry.objects.filter(stream_id=begun.workflow_id, verb="submit").order_by("seq")[0]
    by, because = asked.actor, json.loads(asked.text)["details"]["because"]
    if by == actor.name and because == reason:
        return begun.workflow
    if by == actor.name:
        raise CompensationRefused(
            f"You asked for this already, and said: {because} That stands, as workflow {begun.workflow_id},"
            " and what you wrote now was not recorded."
        )
    how = "was undone" if begun.status == StepStatus.VERIFIED else f"is being undone (the step is {begun.status})"
    raise CompensationRefused(f"It {how} by workflow {begun.workflow_id}, which {by} asked for.")


def _plan(step: Step, undoing: Undoing) -> Plan:
    text = canonical({"step": str(step.pk), "workflow": str(step.workflow_id)})
    return Plan(
        goal=f"Undo “{step.name}” of workflow {step.workflow_id}.",
        kind=KIND,
        constraints=(),
        input=text,
        input_hash=sha256_hex(text),
        prompt_version=step.workflow.prompt_version,
        sealed=True,
        steps=(
            PlannedStep(
                name=f"undo_{step.name}"[:100],
                position=1,
                tool=undoing.tool.name,
                tool_version_id=undoing.tool.version_id,
                template=undoing.arguments,
                arguments=undoing.arguments,
                variant=undoing.variant,
                compensates=step.pk,
            ),
        ),
    )
