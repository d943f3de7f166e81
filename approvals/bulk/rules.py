"""What is never answered in bulk, whoever asks; all else is up to the function for single answers. Plain Python."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoint.states import Decision

ARGUMENTS_SHOWN = 2000  # characters; a list of two hundred such steps is still a page that a person can read


@dataclass(frozen=True)
class Facts:
    """What the rules look at.

    Attributes:
        irreversible: the effect cannot be undone, or nobody knows whether it can.
        whole_plan: the request allows several steps at once.
        characters: length of the arguments.
        intact: the arguments are those that were hashed when they were written ahead.
    """

    irreversible: bool
    whole_plan: bool
    characters: int
    intact: bool


def refusal(kind: Decision, facts: Facts) -> str:
    """Why this is not answered in bulk, as a sentence; empty where it may be.

    Nobody decides on arguments that were not shown whole (S37), and a bulk job shows only short ones.
    """
    if not facts.intact:
        return (
            "Its arguments are not those that were written ahead: the record is damaged, and nobody can decide on it."
        )
    if facts.whole_plan:
        return "It is about a whole plan. Open it and decide there, where all of its steps are shown."
    if kind is Decision.APPROVE and facts.irreversible:
        return "Its effect cannot be undone, and such steps are never approved in bulk. Open it and decide there."
    if facts.characters > ARGUMENTS_SHOWN:
        return (
            f"Its arguments have {facts.characters} characters, too many to be shown whole in a list."
            " Open it and decide there."
        )
    return ""
