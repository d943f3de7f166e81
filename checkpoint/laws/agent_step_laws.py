"""The law of steps that agents carry out, as a PostgreSQL trigger: who makes the call does not change."""

from __future__ import annotations

from collections.abc import Iterable

from checkpoint.laws import changed, law

_STEP = "checkpoint_step"


def install() -> Iterable[str]:
    """SQL that creates it."""
    return [law(_STEP, "who_acts_is_fixed", "UPDATE", changed("by_agent"))]


def uninstall() -> Iterable[str]:
    """SQL that drops it."""
    return [f"DROP TRIGGER law_who_acts_is_fixed ON {_STEP};"]
