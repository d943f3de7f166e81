"""What one answer to many things will do, in words, and what goes wrong if it is wrong. Plain Python.

The sentences say in numbers what `approvals.consequences` says of one case; tests hold both to what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from checkpoint.contracts import Contract, RecoveryClass
from checkpoint.states import CASE_RULES, CaseReason, Decision, StepStatus


@dataclass(frozen=True)
class Effect:
    """One thing that will be answered, as far as the consequences depend on it.

    Attributes:
        reason: why the case was opened; None for a request for approval.
        attempted: it was sent, or may have been.
        needs_others: the policy wants further people before the answer does anything.
    """

    workflow_id: UUID
    reason: CaseReason | None
    contract: Contract | None
    attempted: bool
    needs_others: bool = False

    @property
    def read_back(self) -> bool:
        """Confirmed, it is verified like any other step; otherwise the person's word is all there is."""
        target = CASE_RULES[self.reason].decisions.get(Decision.CONFIRM) if self.reason else None
        return target is StepStatus.COMMITTED and self.contract is not None and self.contract.can_verify

    @property
    def repeatable(self) -> bool:
        """Sent twice, it has one effect, or none."""
        harmless = (RecoveryClass.IDEMPOTENT, RecoveryClass.READ_ONLY)
        return self.contract is not None and self.contract.recovery in harmless


def sentences(kind: Decision, effects: Sequence[Effect]) -> list[str]:
    """What the answer does to those that it will be recorded for; empty where there are none."""
    if kind is Decision.APPROVE:
        return _said(kind, effects)
    acted = [effect for effect in effects if not effect.needs_others]
    waiting = len(effects) - len(acted)
    return _said(kind, acted) + (
        [f"{_count(waiting, 'waits', 'wait')} for the same answer of another person; until then nothing happens."]
        if waiting
        else []
    )


def _said(kind: Decision, effects: Sequence[Effect]) -> list[str]:
    return [sentence for sentence in _SENTENCES[kind](effects) if sentence] if effects else []


def warning(kind: Decision, effects: Sequence[Effect]) -> str:
    """What cannot be mended if the answer is wrong; else empty."""
    at_risk = [effect for effect in effects if effect.attempted and not effect.repeatable]
    if kind is not Decision.RETRY or not at_risk:
        return ""
    return (
        f"{_count(len(at_risk), 'goes', 'go')} to a provider that does not recognise a repetition:"
        " where the first call did take effect, it will happen twice."
    )


def _confirm(effects: Sequence[Effect]) -> list[str]:
    read_back = sum(effect.read_back for effect in effects)
    on_word = len(effects) - read_back
    return [
        f"Sends nothing. Records that {_steps(len(effects))} took effect.",
        f"{_count(read_back, 'is', 'are')} then read back from the provider like any other step." if read_back else "",
        f"{_count(on_word, 'counts', 'count')} as done on your word (“attested”)." if on_word else "",
    ]


def _retry(effects: Sequence[Effect]) -> list[str]:
    again = [effect for effect in effects if effect.attempted]
    harmless = sum(effect.repeatable for effect in again)
    fresh = len(effects) - len(again)
    return [
        f"Sends {_steps(len(again))} again, each with its own key." if again else "",
        f"For {harmless} of them a repetition does no harm: the provider knows the key, or only reads."
        if harmless
        else "",
        f"Prepares {_steps(fresh)} again and, where it fits now, sends {'it' if fresh == 1 else 'them'}."
        if fresh
        else "",
    ]


def _abandon(effects: Sequence[Effect]) -> list[str]:
    return [
        f"Sends nothing more for {_steps(len(effects))} and winds {_workflows(effects)} down.",
        "What took effect stays in place and in the record.",
    ]


def _continue(effects: Sequence[Effect]) -> list[str]:
    return [f"Goes on with {_steps(len(effects))} under what is in force now, where the arguments still fit."]


def _acknowledge(effects: Sequence[Effect]) -> list[str]:
    return [f"Closes {len(effects)} questions. Nothing is sent and nothing undone; what happened stays in the record."]


def _approve(effects: Sequence[Effect]) -> list[str]:
    waiting = sum(effect.needs_others for effect in effects)
    return [
        f"Allows {_steps(len(effects))} to run, each once and with exactly the arguments shown here.",
        f"{_count(waiting, 'waits', 'wait')} for the approval of another person besides." if waiting else "",
    ]


def _reject(effects: Sequence[Effect]) -> list[str]:
    return [f"{_steps(len(effects)).capitalize()} will not run, and {_workflows(effects)} will be wound down."]


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _workflows(effects: Sequence[Effect]) -> str:
    count = len({effect.workflow_id for effect in effects})
    return "its workflow" if count == 1 else f"their {count} workflows"


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


_SENTENCES: dict[Decision, Callable[[Sequence[Effect]], list[str]]] = {
    Decision.CONFIRM: _confirm,
    Decision.RETRY: _retry,
    Decision.ABANDON: _abandon,
    Decision.CONTINUE: _continue,
    Decision.ACKNOWLEDGE: _acknowledge,
    Decision.APPROVE: _approve,
    Decision.REJECT: _reject,
}
