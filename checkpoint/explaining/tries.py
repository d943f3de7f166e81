"""How much of a step's budget of tries is used, in words, for whoever asks what was tried. Plain Python."""

from __future__ import annotations

from checkpoint.actions import StepFacts
from checkpoint.budgets import Policy
from checkpoint.decide import tries_end_at


def budget_in_words(facts: StepFacts, policy: Policy) -> str:
    """As "2 of 3 tries are used, and the time for them is over at … UTC"; empty before the first."""
    if not facts.attempts:
        return ""
    used, ends_at = len(facts.attempts), tries_end_at(facts, policy)
    words = f"{used} of {facts.attempts_allowed} tries {'is' if used == 1 else 'are'} used"
    if facts.attempts_allowed < policy.max_attempts:
        words += f", the policy's {policy.max_attempts} cut short by a refusal that every further try would get too"
    return words + (f", and the time for them is over at {ends_at:%Y-%m-%d %H:%M:%S} UTC" if ends_at else "")
