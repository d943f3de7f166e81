"""What each answer to a case will do to this very workflow, in a sentence; read before it is given. Plain Python.

The sentences say what `checkpoint.recovery` does; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from checkpoint.contracts import Contract, RecoveryClass
from checkpoint.states import CASE_RULES, CaseReason, Decision, StepStatus


@dataclass(frozen=True)
class Situation:
    """What the consequences depend on.

    Attributes:
        contract: the pinned promises; None where no variant was chosen yet.
        attempts: executions so far.
        waiting: steps of the workflow that have not run yet, this one not counted.
        happened: steps of the workflow that did take effect, this one not counted.
        winding_down: the workflow was abandoned, and only what is in the air is settled.
    """

    reason: CaseReason
    step: str
    contract: Contract | None
    attempts: int
    waiting: int
    happened: int
    winding_down: bool = False


TITLES = {
    Decision.CONFIRM: "It happened",
    Decision.RETRY: "It did not happen",
    Decision.ABANDON: "Stop here",
    Decision.CONTINUE: "Go on",
    Decision.ACKNOWLEDGE: "I know",
    Decision.ANSWER: "Answer",
}
_NO_OUTCOME_TITLES = {Decision.RETRY: "Try again"}
_OF_AGENT = {Decision.CONTINUE: "Wait on"}

# What goes on with a step after an answer; the page follows it until nothing more happens.
HAPPENING = {
    StepStatus.PLANNED: "The step waits for its turn.",
    StepStatus.PREPARED: "The step is ready to be sent.",
    StepStatus.STARTED: "A worker has the step.",
    StepStatus.COMMITTED: "It took effect; its outcome is being read back.",
    StepStatus.VERIFIED: "The step is verified.",
    StepStatus.FAILED: "The step did not take effect and will be sent again.",
    StepStatus.UNCERTAIN: "Whether it took effect is still not known.",
    StepStatus.ABANDONED: "The step has ended; nothing more is sent for it.",
    StepStatus.SUPERSEDED: "Another step took its place; nothing is sent for this one.",
}

ABOUT_OUTCOME = frozenset(
    {CaseReason.OUTCOME_UNKNOWN, CaseReason.INSPECTION_INCONCLUSIVE, CaseReason.EFFECT_NOT_VISIBLE}
)


def title(reason: CaseReason, kind: Decision) -> str:
    """The answer as a person would say it."""
    if reason is CaseReason.AGENT_SILENT and kind in _OF_AGENT:
        return _OF_AGENT[kind]
    return TITLES[kind] if reason in ABOUT_OUTCOME else _NO_OUTCOME_TITLES.get(kind, TITLES[kind])


def sentence(kind: Decision, situation: Situation) -> str:
    """What the answer will do."""
    return " ".join(part for part in _SENTENCES[kind](situation) if part)


def warning(kind: Decision, situation: Situation) -> str:
    """What goes wrong if the answer is wrong, where that cannot be mended; else empty."""
    if kind is Decision.RETRY and situation.attempts and not situation.winding_down and _about_outcome(situation):
        return _UNRECOGNISED if _recovery(situation) in {RecoveryClass.OPAQUE, RecoveryClass.QUERYABLE} else ""
    return ""


def _about_outcome(situation: Situation) -> bool:
    return situation.reason in ABOUT_OUTCOME


_UNRECOGNISED = "The provider does not recognise a repetition: if the first call did take effect, it will happen twice."


def _recovery(situation: Situation) -> RecoveryClass:
    return situation.contract.recovery if situation.contract else RecoveryClass.OPAQUE


def _confirm(situation: Situation) -> list[str]:
    target = CASE_RULES[situation.reason].decisions[Decision.CONFIRM]
    readable = situation.contract is not None and situation.contract.can_verify
    if target is StepStatus.COMMITTED and readable:
        then = "It is then read back from the provider like any other step."
    else:
        then = "It then counts as done on your word (“attested”)."
    return [f"Sends nothing. Records that “{situation.step}” took effect.", then, _afterwards(situation)]


def _retry(situation: Situation) -> list[str]:
    if situation.winding_down:
        return [f"Records that “{situation.step}” did not happen. Nothing is sent: the workflow is being wound down."]
    if not situation.attempts:
        return [f"Prepares “{situation.step}” again and, if it fits now, sends it.", _afterwards(situation)]
    return [
        f"Sends “{situation.step}” again with the same key, as attempt {situation.attempts + 1}.",
        _HARMLESS.get(_recovery(situation), ""),
        _afterwards(situation),
    ]


_HARMLESS = {
    RecoveryClass.IDEMPOTENT: "The provider knows the key, so a repetition has no second effect.",
    RecoveryClass.READ_ONLY: "It only reads, so a repetition does no harm.",
}


def _abandon(situation: Situation) -> list[str]:
    if situation.reason is CaseReason.AGENT_SILENT:
        return ["Sends nothing more and winds the workflow down; what took effect stays in place and in the record."]
    waiting, happened = situation.waiting, situation.happened
    goes = "goes on winding" if situation.winding_down else "winds"
    return [
        f"Sends nothing more for “{situation.step}” and {goes} the workflow down.",
        f"{_steps(waiting)} will not run." if waiting else "",
        f"{_steps(happened)} that took effect {'stays' if happened == 1 else 'stay'} in place and in the record."
        if happened
        else "",
    ]


def _continue(situation: Situation) -> list[str]:
    if situation.reason is CaseReason.AGENT_SILENT:
        return ["Sends nothing. Waits for the agent as long again, and then asks anew."]
    return [f"Goes on with “{situation.step}” under what is in force now, if its arguments still fit."]


def _acknowledge(situation: Situation) -> list[str]:
    return ["Closes the question. Nothing is sent and nothing undone; what happened twice stays in the record."]


def _answer(situation: Situation) -> list[str]:
    known = (
        f"Records what you fill in as the result of “{situation.step}”; it counts as done on your word (“attested”)."
    )
    return [known, _steps_can_run(situation)]


def _steps_can_run(situation: Situation) -> str:
    return f"{_steps(situation.waiting)} can then run." if situation.waiting and not situation.winding_down else ""


def _afterwards(situation: Situation) -> str:
    if situation.winding_down:
        return "Nothing follows: the workflow is being wound down."
    return f"Once it is verified, {_steps(situation.waiting)} can run." if situation.waiting else ""


def _steps(count: int) -> str:
    return "1 other step" if count == 1 else f"{count} other steps"


_SENTENCES: dict[Decision, Callable[[Situation], list[str]]] = {
    Decision.CONFIRM: _confirm,
    Decision.RETRY: _retry,
    Decision.ABANDON: _abandon,
    Decision.CONTINUE: _continue,
    Decision.ACKNOWLEDGE: _acknowledge,
    Decision.ANSWER: _answer,
}
