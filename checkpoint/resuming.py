"""An agent goes on with a workflow, perhaps under another version of its prompt."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User

from checkpoint import doorbell, transitions
from checkpoint.agents import agent_waits
from checkpoint.canonical import string_problem
from checkpoint.errors import ActionIncomplete, AlreadyEnding, NotFound
from checkpoint.models import Workflow
from checkpoint.people import Actor
from checkpoint.permissions import workflows_visible_to
from checkpoint.rows import step_rows, workflow_rows
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.states import WORKFLOW_TERMINAL, StepStatus
from checkpoint.transactions import one_transaction
from checkpoint.transitions import Changes
from checkpoint.workflows import require_right

PROMPT_LIMIT = 100  # characters


@one_transaction
def resume(*, workflow_id: UUID, prompt_version: str, actor: Actor, user: User | None = None) -> Workflow:
    """Records that the workflow's agent goes on with this version of its prompt.

    What a prompt that is not the one of the plan does to the steps that were not sent is for the policy to say.

    Args:
        prompt_version: at most 100 characters.
        user: the account in whose name it is done, and whose rights count; None for the machine's operator.

    Raises:
        NotFound: there is none, or the user does not see it.
        Forbidden: the user sees it, but may not submit for its team.
        ActionIncomplete: the prompt version is missing, too long, or cannot be stored.
        AlreadyEnding: the workflow has ended, or is being wound down.
    """
    prompt_version = _checked_prompt(prompt_version)
    visible = Workflow.objects.all()
    if user is not None:
        user = User.objects.get(pk=user.pk)  # read again: a right that was taken away counts at once (S25)
        visible = workflows_visible_to(user)
    found = visible.select_related("team").filter(pk=workflow_id).first()
    if found is None:
        raise NotFound(f"There is no workflow {workflow_id} that you may see.")
    if user is not None:
        require_right(user, found.team)
    changes = transitions.lock([workflow_id], actor=actor)
    row = changes.workflows[workflow_id]
    if row.winding_down or row.status in WORKFLOW_TERMINAL:
        raise AlreadyEnding(f"The workflow is {'being wound down' if row.winding_down else row.status}.")
    _resume(changes, row, prompt_version)
    return Workflow.objects.get(pk=workflow_id)


def _resume(changes: Changes, row: WorkflowRow, prompt_version: str) -> None:
    before = row.present_prompt
    if prompt_version != before:
        workflow_rows.resume(row, prompt_version)
        for step in step_rows.of_workflows([row.id], (StepStatus.PLANNED, StepStatus.PREPARED)):
            if step.next_at is not None:  # what waits for an answer may have to be asked anew
                changes.touch(step).next_at = None
    agent_waits.agent_is_back(changes, row)
    changes.note_workflow(row.id, "resume", before=before, after=prompt_version)
    changes.finish()
    doorbell.ring_on_commit()


def _checked_prompt(prompt_version: str) -> str:
    prompt_version = prompt_version.strip()
    if not prompt_version or len(prompt_version) > PROMPT_LIMIT or string_problem(prompt_version):
        raise ActionIncomplete("prompt_version", f"name the version of the prompt in 1 to {PROMPT_LIMIT} characters.")
    return prompt_version
