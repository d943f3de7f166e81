"""The one safe thing that a workflow's agent can do next, as a function of what the journal says. Plain Python.

Nothing that a tool, a provider or a stranger wrote is looked at here: whatever stands in results, names and errors, the
answer is one of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from checkpoint.states import WorkflowStatus


class AgentAction(StrEnum):
    """What the agent does next."""

    NOTHING = "nothing"
    WAIT = "wait"
    EDIT_STEP = "edit_step"
    BEGIN_STEP = "begin_step"
    APPEND_OR_SEAL = "append_or_seal"


@dataclass(frozen=True)
class Standstill:
    """All that the next action depends on.

    Attributes:
        asked: open questions to people: cases, and requests for approval; not the one whether its agent is still there.
        sent_back: names of the steps that a person wants changed before they may run, in the plan's order.
        to_begin: names of the steps that the agent is to carry out itself now.
        missed: people are asked what to do because its agent did not go on in time.
    """

    status: WorkflowStatus
    winding_down: bool = False
    asked: int = 0
    sent_back: Sequence[str] = ()
    missed: bool = False
    to_begin: Sequence[str] = ()


@dataclass(frozen=True)
class NextAction:
    """What the agent does next, and with which step if with one."""

    action: AgentAction
    words: str
    step: str = ""


_NOT_YOURSELF = "Make none of the plan's calls yourself: what is not known to have failed may have happened."


def next_action(at: Standstill) -> NextAction:
    """The safe next action."""
    if at.status is WorkflowStatus.COMPLETED:
        words = "The workflow is completed. Nothing of it is to be done again; new work is a new workflow."
        return NextAction(AgentAction.NOTHING, words)
    if at.status is WorkflowStatus.ABANDONED:
        words = "The workflow was abandoned. What the plan lists as verified did happen; do not repeat it."
        return NextAction(AgentAction.NOTHING, words)
    if at.winding_down:
        words = f"The workflow was abandoned, and what is in the air is still settled: wait. {_NOT_YOURSELF}"
        return NextAction(AgentAction.WAIT, words)
    return _of_living(at)


def _of_living(at: Standstill) -> NextAction:
    if at.sent_back:
        words = "A person wants this step changed before it may run: edit its arguments, or abandon the workflow."
        return NextAction(AgentAction.EDIT_STEP, words, at.sent_back[0])
    if at.asked:
        return NextAction(AgentAction.WAIT, f"People are asked; wait for their answers. {_NOT_YOURSELF}")
    if at.to_begin and (at.status is WorkflowStatus.AWAITING_AGENT or at.missed):
        words = (
            "This step is the agent's to carry out: begin it, act only if it is begun, once, and record how it went."
        )
        return NextAction(AgentAction.BEGIN_STEP, words, at.to_begin[0])
    if at.status is WorkflowStatus.AWAITING_AGENT or at.missed:
        words = "All steps so far are verified and the plan is not sealed: append the next steps, or seal it."
        return NextAction(AgentAction.APPEND_OR_SEAL, words)
    return NextAction(AgentAction.WAIT, f"Workers carry the plan out; wait. {_NOT_YOURSELF}")
