"""docs/states.md shows the states as they are."""

from __future__ import annotations

import pytest

from checkpoint import states
from checkpoint.config.environment import BASE_DIR
from checkpoint.management import state_charts


def test_the_page_is_up_to_date() -> None:
    stored = (BASE_DIR / "docs" / "states.md").read_text(encoding="utf-8")
    assert stored == state_charts.page(), "run `manage.py state_charts`"


@pytest.mark.parametrize(
    ("arrows", "words"),
    [
        (states.STEP_ARROWS, state_charts._STEP_ARROWS),
        (states.CASE_ARROWS, state_charts._CASE_ARROWS),
        (states.APPROVAL_ARROWS, state_charts._APPROVAL_ARROWS),
    ],
)
def test_every_arrow_has_its_cause_and_no_cause_is_without_an_arrow(
    arrows: dict[str, frozenset[str]], words: dict[tuple[str, str], str]
) -> None:
    assert set(words) == {(source, target) for source, targets in arrows.items() for target in targets}


def test_every_status_of_workflow_and_step_is_explained() -> None:
    assert set(state_charts._WORKFLOW) == set(states.WorkflowStatus)
    assert set(state_charts._STEP) == set(states.StepStatus)


def test_the_statuses_are_explained_in_the_order_in_which_they_are_asked_for() -> None:
    """Each line's facts hold for the lines below it too; the function answers with the upper one."""
    s = states.StepStatus
    every = {
        states.WorkflowStatus.ABANDONED: states.WorkflowFacts({}, open_cases=1, winding_down=True),
        states.WorkflowStatus.NEEDS_REVIEW: states.WorkflowFacts({s.STARTED: 1, s.COMMITTED: 1}, 1, 1),
        states.WorkflowStatus.EXECUTING: states.WorkflowFacts({s.STARTED: 1, s.COMMITTED: 1, s.FAILED: 1}, 0, 1),
        states.WorkflowStatus.VERIFYING: states.WorkflowFacts({s.COMMITTED: 1, s.FAILED: 1}, 0, 1),
        states.WorkflowStatus.COMPLETED: states.WorkflowFacts({s.VERIFIED: 1}, 0, 1),
        states.WorkflowStatus.AWAITING_AGENT: states.WorkflowFacts({s.VERIFIED: 1}, 0, 1, sealed=False),
        states.WorkflowStatus.AWAITING_APPROVAL: states.WorkflowFacts({s.FAILED: 1, s.VERIFIED: 1}, 0, 1),
        states.WorkflowStatus.FAILED_RETRYABLE: states.WorkflowFacts({s.FAILED: 1, s.VERIFIED: 1}),
        states.WorkflowStatus.PLANNED: states.WorkflowFacts({s.PLANNED: 1}),
    }
    assert list(state_charts._WORKFLOW) == list(every)
    assert {status: states.workflow_status(facts) for status, facts in every.items()} == {s: s for s in every}
