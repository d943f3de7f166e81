"""The laws of plans as PostgreSQL triggers: what was sealed stays so, and only a sealed plan is completed."""

from __future__ import annotations

from collections.abc import Iterable

from checkpoint.laws import law

_WORKFLOW = "checkpoint_workflow"
_LAWS = {
    "sealed_stays": "OLD.sealed AND NOT NEW.sealed",
    "completed_means_sealed": "NEW.status = 'completed' AND OLD.status <> NEW.status AND NOT NEW.sealed",
}


def install() -> Iterable[str]:
    """SQL that creates them."""
    return [law(_WORKFLOW, name, "UPDATE", broken_when) for name, broken_when in _LAWS.items()]


def uninstall() -> Iterable[str]:
    """SQL that drops them."""
    return [f"DROP TRIGGER law_{name} ON {_WORKFLOW};" for name in _LAWS]
