"""What changed since a step was planned: the policy, the agent's prompt, its tool. Plain data for the gate.

A policy says for each of the three what that does at the next dispatch (`rulings.DriftRule`). What was asked or allowed
names what there was at that time, so that the gate notices every change since by comparing (`gating.Pins`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

from checkpoint import tool_versions
from checkpoint.gates.gating import Pins
from checkpoint.gates.rulings import DriftAnswer, DriftRule
from checkpoint.rows.step_rows import StepRow
from checkpoint.rows.workflow_rows import WorkflowRow
from checkpoint.states import CaseReason
from checkpoint.turns import pinned


@dataclass(frozen=True)
class Drift:
    """One thing that is not what it was.

    Attributes:
        reason: of the case, where a person is to look.
        note: what it was and what it is.
    """

    answer: DriftAnswer
    reason: CaseReason
    note: str


class Present:
    """What there is now, read at most once for a turn, and only where a policy's rules make it matter."""

    def __init__(self, policy_version_id: uuid.UUID) -> None:
        self.policy_version_id = policy_version_id
        self._tools: dict[str, uuid.UUID] | None = None

    def tool(self, row: StepRow) -> uuid.UUID:
        """The newest published version of the step's tool."""
        if self._tools is None:
            self._tools = tool_versions.newest_ids()
        return self._tools[pinned.tool_version(row.tool_version_id).name]

    def drifts(self, workflow: WorkflowRow, row: StepRow, rule: DriftRule) -> Iterator[Drift]:
        """What changed since the step was planned. A tool's change is left out where the rule makes nothing of it."""
        if workflow.policy_version_id != self.policy_version_id:
            now, then = (pinned.policy_number(one) for one in (self.policy_version_id, workflow.policy_version_id))
            note = f"Version {now} of the policy is in force; the plan was made under version {then}."
            yield Drift(rule.policy, CaseReason.POLICY_CHANGED, note)
        if workflow.prompt_version != workflow.present_prompt:
            planned_with = workflow.prompt_version or "one without a name"
            note = (
                f"The agent resumed with the prompt {workflow.present_prompt}; the plan was made with {planned_with}."
            )
            yield Drift(rule.prompt, CaseReason.PROMPT_CHANGED, note)
        if rule.tool is not DriftAnswer.REAPPROVE and self.tool(row) != row.tool_version_id:
            yield Drift(rule.tool, CaseReason.TOOL_CHANGED, _tool_note(row, self.tool(row)))


def _tool_note(row: StepRow, newest_id: uuid.UUID) -> str:
    planned, newest = pinned.tool_version(row.tool_version_id), pinned.tool_version(newest_id)
    parts = {"what arguments it takes": "schema", "what it promises": "variants", "its summary": "summary"}
    changed = [words for words, name in parts.items() if getattr(planned, name) != getattr(newest, name)]
    return (
        f"{newest} was published at {newest.published_at:%Y-%m-%d %H:%M:%S} UTC and is the newest. The step was planned"
        f" with {planned}, published at {planned.published_at:%Y-%m-%d %H:%M:%S} UTC."
        + (f" Changed since: {', '.join(changed)}." if changed else "")
    )


def disregard(pins: Pins, given: Pins, rule: DriftRule) -> Pins:
    """What would be sent now, as under the earlier approval in everything whose change the policy lets continue."""
    if rule.policy is DriftAnswer.CONTINUE:
        pins = replace(pins, policy_version_id=given.policy_version_id)
    if rule.prompt is DriftAnswer.CONTINUE or given.prompt_version is None:
        pins = replace(pins, prompt_version=given.prompt_version)
    if rule.tool is DriftAnswer.CONTINUE or given.newest_tool_id is None:
        pins = replace(pins, newest_tool_id=given.newest_tool_id)
    return pins
