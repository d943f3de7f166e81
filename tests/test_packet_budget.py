"""What fits into a packet: never more than its budget, the important things first, and what is missing is counted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint.canonical import canonical
from checkpoint.errors import BudgetTooSmall
from checkpoint.explaining.next_actions import AgentAction, Standstill, next_action
from checkpoint.packets.packet_budget import LEFT_OUT, Piece, fit
from checkpoint.states import WORKFLOW_TERMINAL, WorkflowStatus


def size(text: str) -> int:
    """In bytes."""
    return len(text.encode())


def words(text: str) -> int:
    """As a tokenizer counts: parts of a text do not add up to the whole."""
    return len(text.replace('"', " ").replace(",", " ").split())


PIECES = st.lists(
    st.builds(
        Piece, st.sampled_from(["plan", "evidence"]), st.fixed_dictionaries({"text": st.text("aé, ", max_size=60)})
    ),
    max_size=20,
)


@given(PIECES, st.integers(min_value=150, max_value=2000), st.sampled_from([size, words]))
def test_it_never_exceeds_its_budget_and_counts_what_is_missing(pieces: list[Piece], budget: int, measure: Any) -> None:
    kept = {"constraints": ["Never."], "plan": [], "evidence": []}
    packet = fit(kept, pieces, budget=budget, measure=measure)
    assert measure(canonical(packet)) <= budget
    assert packet["constraints"] == ["Never."]
    for section in ("plan", "evidence"):
        wanted = sum(piece.section == section for piece in pieces)
        assert len(packet[section]) + packet[LEFT_OUT].get(section, 0) == wanted
    if measure(canonical({**kept, "plan": [p.value for p in pieces]})) * 2 + 100 < budget:
        assert not packet[LEFT_OUT], "where there is room, all is there"


def test_what_comes_first_is_taken_first_and_details_join_their_entry() -> None:
    kept = {"unresolved": [{"id": "1"}], "plan": []}
    pieces = [Piece("unresolved", {"sentence": "x" * 40}, into=0), Piece("plan", {"step": "y" * 40})]
    whole = fit(kept, pieces, budget=1000, measure=size)
    assert whole == {
        "unresolved": [{"id": "1", "sentence": "x" * 40}], "plan": [{"step": "y" * 40}], LEFT_OUT: {}
    }  # fmt: skip
    tight = fit(kept, pieces, budget=size(canonical(whole)) - 1, measure=size)
    assert (tight["unresolved"], tight["plan"], tight[LEFT_OUT]) == (whole["unresolved"], [], {"plan": 1})
    assert kept == {"unresolved": [{"id": "1"}], "plan": []}


def test_what_must_be_there_is_not_cut() -> None:
    with pytest.raises(BudgetTooSmall, match="needs 2"):
        fit({"constraints": ["x" * 200]}, [], budget=100, measure=size)


@pytest.mark.parametrize("status", WorkflowStatus)
@pytest.mark.parametrize("winding_down", [False, True])
@pytest.mark.parametrize("asked", [0, 2])
@pytest.mark.parametrize("sent_back", [(), ("charge", "mail")])
def test_every_standstill_has_one_next_action(
    status: WorkflowStatus, winding_down: bool, asked: int, sent_back: tuple[str, ...]
) -> None:
    found = next_action(Standstill(status, winding_down, asked, sent_back))
    over = status in WORKFLOW_TERMINAL
    assert (found.action is AgentAction.NOTHING) is over
    assert (found.action is AgentAction.EDIT_STEP) is bool(sent_back and not over and not winding_down)
    assert found.step == ("charge" if found.action is AgentAction.EDIT_STEP else "")
    back = next_action(Standstill(status, winding_down, asked, sent_back, missed=True))
    assert (back.action is AgentAction.APPEND_OR_SEAL) or back == found, "an agent that is missed can come back"
    begins = next_action(Standstill(status, winding_down, asked, sent_back, to_begin=["own"]))
    assert begins == found or (begins.action, begins.step) == (AgentAction.BEGIN_STEP, "own")
    if found.action is AgentAction.APPEND_OR_SEAL:
        assert begins.action is AgentAction.BEGIN_STEP
        assert status is WorkflowStatus.AWAITING_AGENT
        assert not asked
