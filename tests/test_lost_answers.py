"""The provider does the work and its answer is lost, again and again, on the running system."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checkpoint.models import Attempt, Step
from checkpoint.states import StepStatus, WorkflowStatus
from tests.effects import KEYED, KEYED_LOOKED_UP, QUERYABLE, EffectKind
from tests.rig import Rig

TIMES = 200
KINDS = (KEYED, KEYED_LOOKED_UP, QUERYABLE)


@pytest.fixture
def system(rig: Rig) -> Iterator[Rig]:
    """One worker at work."""
    rig.worker()
    yield rig
    rig.sandbox.clear()


def first_answer_lost(system: Rig, kind: EffectKind) -> dict[str, Any]:
    """A step of which the provider does the work at the first send, and never answers that one."""
    step = kind.step(system.sandbox)
    step["arguments"]["json"]["metadata"] = {"sandbox": "drop_after_work"}
    return step


@pytest.mark.slow
def test_s04_two_hundred_lost_answers_in_a_row_double_nothing_and_ask_nobody(system: Rig) -> None:
    kinds = [KINDS[number % len(KINDS)] for number in range(TIMES)]
    workflows = [system.submit(first_answer_lost(system, kind)) for kind in kinds]
    for workflow in workflows:
        assert system.rest(workflow).status == WorkflowStatus.COMPLETED
        assert system.cases(workflow) == []
    steps = Step.objects.filter(workflow__in=[workflow.pk for workflow in workflows], status=StepStatus.VERIFIED)
    made = system.sandbox.ledger()["by_key"]
    for kind in KINDS:
        keys = set(steps.filter(name=kind.name).values_list("idempotency_key", flat=True))
        assert {made[kind.ledger_kind].get(key) for key in keys} == {1}
    assert steps.count() == TIMES
    assert Attempt.objects.filter(step__in=steps, ending="unknown").count() == TIMES, "every answer was lost once"
