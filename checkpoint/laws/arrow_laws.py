"""The laws of the arrows once more, for databases whose laws were made from an earlier `states.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from checkpoint import states
from checkpoint.laws import status_laws
from checkpoint.laws.waiver_laws import WORKFLOW_END

_STATES: tuple[tuple[str, Iterable[StrEnum], Mapping[Any, frozenset[Any]]], ...] = (
    ("checkpoint_workflow", states.WORKFLOW_INITIAL, states.WORKFLOW_ARROWS),
    ("checkpoint_step", states.STEP_INITIAL, states.STEP_ARROWS),
    ("checkpoint_approval", states.APPROVAL_INITIAL, states.APPROVAL_ARROWS),
)


def arrows_anew() -> Iterable[str]:
    """SQL that puts the present arrows, and the present law of a workflow's end, into the place of earlier ones."""
    yield WORKFLOW_END.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    for table, initial, arrows in _STATES:
        yield f"DROP TRIGGER law_initial_states_only ON {table}; DROP TRIGGER law_legal_arrows_only ON {table};"
        yield from status_laws(table, initial, arrows)
