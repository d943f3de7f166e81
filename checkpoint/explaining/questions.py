"""The words of a case: one sentence, and what is known, not known and tried. Plain text, no framework.

Text that a tool or provider wrote is quoted as `said`, never woven into a statement of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from checkpoint.actions import AttemptFacts
from checkpoint.contracts import Contract, RecoveryClass
from checkpoint.states import CaseReason


class Cut(StrEnum):
    """What is known of an attempt that did not come back to its worker."""

    NOT = ""
    WHILE_SENDING = "its worker was killed while the call was under way, and no answer had come by then"
    UNREAD = "its worker stopped answering, and no flight record says how far the call had come"


@dataclass(frozen=True)
class Subject:
    """What a question is about.

    Attributes:
        cut: how the last attempt without an outcome was cut off, if it was.
        said: the last words of the tool or provider, untrusted.
        note: what the engine adds about this occasion.
        answer_by: until when an answer is wanted (ISO 8601), if there is such a time.
        budget: how much of the budget of tries is used.
    """

    step: str
    tool: str
    contract: Contract | None
    attempts: Sequence[AttemptFacts]
    inspections: int = 0
    verifications: int = 0
    cut: Cut = Cut.NOT
    said: str = ""
    note: str = ""
    answer_by: str = ""
    budget: str = ""


@dataclass(frozen=True)
class Question:
    """What a person reads first."""

    sentence: str
    known: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    said: str = ""
    answer_by: str = ""

    def findings(self) -> dict[str, list[str] | str]:
        """The form in which a case stores it."""
        stored: dict[str, list[str] | str] = {"known": self.known, "unknown": self.unknown, "tried": self.tried}
        return stored | {"said": self.said} | ({"answer_by": self.answer_by} if self.answer_by else {})


_SENTENCES = {
    CaseReason.OUTCOME_UNKNOWN: "“{step}” was started with {tool}, and whether it took effect is not known: {why}.",
    CaseReason.INSPECTION_INCONCLUSIVE: "“{step}” was started with {tool}, and no lookup told whether it took effect.",
    CaseReason.EFFECT_NOT_VISIBLE: "{tool} reported “{step}” as done, but its outcome did not become visible in time.",
    CaseReason.CONFLICTING_EFFECT: "Under the key of “{step}” an effect was found that was made with other arguments.",
    CaseReason.DUPLICATE_EFFECT: "A late answer shows that “{step}” may have taken effect twice.",
    CaseReason.RETRIES_EXHAUSTED: "“{step}” did not take effect, and no tries are left: {tool} was refused each time.",
    CaseReason.POLICY_CHANGED: "The policy changed since “{step}” was planned, and it wants a person to look.",
    CaseReason.PROMPT_CHANGED: "The agent's prompt changed since “{step}” was planned, and a person is to look.",
    CaseReason.TOOL_CHANGED: "“{step}” was planned with {tool}, and that is not what there is now.",
    CaseReason.ARTIFACT_MISMATCH: "An artifact that “{step}” needs is missing, or is not what its hash says.",
    CaseReason.COMPENSATION_FAILED: "“{step}” was to undo an earlier effect with {tool}, and did not take effect.",
    CaseReason.PLAN_INVALID: "“{step}” cannot go on: its arguments do not fit {tool}, or what it names is taken.",
    CaseReason.RECORD_DAMAGED: "The stored result of “{step}” does not match its own hash.",
    CaseReason.HUMAN_TASK: "“{step}” asks a person, and the workflow goes on with the answer.",
    CaseReason.AGENT_SILENT: "The plan rests at “{step}”: it is its agent's turn, and the agent did nothing in time.",
}

_UNKNOWN = {
    CaseReason.OUTCOME_UNKNOWN: "Whether the effect took place.",
    CaseReason.INSPECTION_INCONCLUSIVE: "Whether the effect took place.",
    CaseReason.EFFECT_NOT_VISIBLE: "Whether the effect is there and only hidden, or never came about.",
    CaseReason.CONFLICTING_EFFECT: "Who made the effect that was found, and whether it serves the purpose.",
    CaseReason.DUPLICATE_EFFECT: "Whether the provider carried out both requests.",
    CaseReason.RETRIES_EXHAUSTED: "What has to change for the provider to accept it.",
    CaseReason.POLICY_CHANGED: "Whether the step is still wanted under the policy now in force.",
    CaseReason.PROMPT_CHANGED: "Whether the agent would still plan this step.",
    CaseReason.TOOL_CHANGED: "Whether the present version of the tool does the same.",
    CaseReason.ARTIFACT_MISMATCH: "What the artifact was.",
    CaseReason.COMPENSATION_FAILED: "How else the earlier effect can be undone.",
    CaseReason.PLAN_INVALID: "What the agent meant to pass on.",
    CaseReason.RECORD_DAMAGED: "What the result was.",
    CaseReason.HUMAN_TASK: "The answer.",
    CaseReason.AGENT_SILENT: "Whether the agent comes back, and what it still meant to do.",
}


def ask(reason: CaseReason, subject: Subject) -> Question:
    """The question that a case of this reason puts."""
    sentence = _SENTENCES[reason].format(step=subject.step, tool=subject.tool, why=_why(subject))
    return Question(
        sentence=sentence,
        known=[*_known_of_attempts(subject.attempts), *([subject.note] if subject.note else [])],
        unknown=[_UNKNOWN[reason]],
        tried=_tried(subject),
        said=subject.said[:2000],
        answer_by=subject.answer_by,
    )


def _why(subject: Subject) -> str:
    return f"{subject.cut}, and {_no_way_to_know(subject)}" if subject.cut else _no_way_to_know(subject)


def _no_way_to_know(subject: Subject) -> str:
    contract = subject.contract
    if contract is None or contract.recovery is RecoveryClass.OPAQUE:
        return "the provider can neither be asked nor told to ignore a repetition"
    if contract.recovery is RecoveryClass.IDEMPOTENT and not contract.can_inspect:
        return "the provider no longer remembers its key, or every repetition was cut off, and it cannot be asked"
    return "no answer was recorded"


def _known_of_attempts(attempts: Sequence[AttemptFacts]) -> list[str]:
    lines = []
    for number, attempt in enumerate(attempts, 1):
        fate = {True: "took effect", False: "did not take effect", None: "ended without a recorded answer"}
        lines.append(f"Attempt {number} started at {_clock(attempt.started_at)} and {fate[attempt.applied]}.")
    return lines


def _tried(subject: Subject) -> list[str]:
    lines = [f"{_times(len(subject.attempts), 'execution')} with the same key."] if subject.attempts else []
    if subject.budget:
        lines.append(f"{subject.budget}.")
    if subject.inspections:
        lines.append(f"{_times(subject.inspections, 'lookup')} since the last attempt.")
    if subject.verifications:
        lines.append(f"{_times(subject.verifications, 'reading')} of the outcome.")
    if subject.contract is not None and not subject.contract.can_inspect:
        lines.append("No lookup: the tool has none for this effect.")
    return lines


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
