"""Where is it? A pure function of records; the words must be those of what `decide` will do."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from checkpoint.actions import AttemptFacts, StepFacts
from checkpoint.budgets import Policy
from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.decide import next_action
from checkpoint.explaining.explanations import Explanation, StepExplanation, explain
from checkpoint.explaining.outlook import outlook
from checkpoint.models import Attempt, Case, Ending, Evidence, Step, ToolVersion, Workflow
from checkpoint.rows.attempt_log import WAIT_FOR_WORD
from checkpoint.rows.workflow_records import Records
from checkpoint.states import STEP_TERMINAL, CaseReason, Standing, StepStatus, WorkflowStatus

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=20)
OPAQUE = Contract(recovery=RecoveryClass.OPAQUE, reversibility=Reversibility.IRREVERSIBLE, can_verify=True)
KEYED = Contract(
    recovery=RecoveryClass.IDEMPOTENT, reversibility=Reversibility.COMPENSABLE, can_inspect=True, can_verify=True
)


def tool(contract: Contract) -> ToolVersion:
    """A tool of one variant."""
    variants = [{"name": "only", "when": {}, "contract": contract.to_json()}]
    return ToolVersion(name="card.charge", version="1", variants=variants)


def step(name: str, status: StepStatus, *, contract: Contract = OPAQUE, position: int = 1, **fields: Any) -> Step:
    """A step, not stored."""
    variant = "" if status is StepStatus.PLANNED else "only"
    fields = {"attempts_allowed": 3, **fields}
    return Step(
        id=uuid.uuid4(),
        name=name,
        status=status,
        position=position,
        tool_version=tool(contract),
        variant=variant,
        **fields,
    )


def attempt(number: int = 1, **fields: Any) -> Attempt:
    """An attempt that began a minute ago and never came back."""
    began = NOW - timedelta(seconds=60)
    fields = {"ended_at": NOW, "ending": Ending.LOST, "applied": None, **fields}
    return Attempt(number=number, started_at=began, deadline_at=began + timedelta(seconds=30), **fields)


def explained(
    steps: Iterable[Step],
    *,
    attempts: dict[str, list[Attempt]] | None = None,
    evidence: dict[str, list[Evidence]] | None = None,
    cases: dict[str, list[Case]] | None = None,
    budgets: dict[str, Policy] | None = None,
    **workflow: Any,
) -> Explanation:
    """The explanation of a workflow with these steps; the rest is given by step name."""
    steps = list(steps)
    ids = {one.name: one.pk for one in steps}
    return explain(
        Records(
            workflow=Workflow(kind="refund", goal="Refund.", **workflow),
            steps=steps,
            attempts={ids[name]: found for name, found in (attempts or {}).items()},
            evidence={ids[name]: found for name, found in (evidence or {}).items()},
            cases={ids[name]: found for name, found in (cases or {}).items()},
            policy=Policy(),
            now=NOW,
            budgets={ids[name]: found for name, found in (budgets or {}).items()},
        )
    )


def only(explanation: Explanation) -> StepExplanation:
    """Its one step."""
    [found] = explanation.steps
    return found


def test_what_is_done_stands_on_its_evidence() -> None:
    read = Evidence(
        kind="verification", finding="visible", source="billing", standing="verified", operation_id="", observed_at=NOW
    )
    done = step("invoice", StepStatus.VERIFIED, standing=Standing.VERIFIED, operation_id="INV-7")
    told = only(explained([done], evidence={"invoice": [read]}, attempts={"invoice": [attempt(applied=True)]}))
    assert (told.status, told.standing, told.operation_id, told.attempts) == ("verified", "verified", "INV-7", 1)
    assert [(seen.finding, seen.source, seen.observed_at) for seen in told.evidence] == [("visible", "billing", NOW)]
    assert (told.uncertain, told.outlook.words) == ("", "")


def test_an_open_question_comes_with_its_sentence_and_the_legal_answers() -> None:
    case = Case(reason=CaseReason.OUTCOME_UNKNOWN, sentence="Did it happen?", opened_at=NOW)
    asked = explained(
        [step("charge", StepStatus.UNCERTAIN), step("mail", StepStatus.PLANNED, position=2)],
        attempts={"charge": [attempt()]},
        cases={"charge": [case]},
        status=WorkflowStatus.NEEDS_REVIEW,
    )
    assert asked.sentence == "0 of 2 steps are verified (1 uncertain). 1 question to a person is open."
    charge, mail = asked.steps
    assert charge.uncertain == "whether attempt 1 took effect"
    assert [(question.sentence, question.decisions) for question in charge.questions] == [
        ("Did it happen?", ["confirm", "retry", "abandon"])
    ]
    assert charge.outlook.words == "a person answers the open question"
    assert mail.outlook.words == "its turn comes when every step at position 1 is verified"


def test_steps_side_by_side_each_have_an_outlook() -> None:
    told = explained([step("a", StepStatus.PREPARED), step("b", StepStatus.COMMITTED), step("c", StepStatus.PLANNED)])
    assert [one.outlook.words for one in told.steps] == [
        "it is executed",
        "its outcome is read back",
        "its arguments are completed from earlier results, and then it is executed",
    ]
    assert [one.uncertain for one in told.steps] == ["", "whether the outcome can be read where it should be", ""]


@pytest.mark.parametrize(
    ("contract", "fields", "words", "at"),
    [
        (OPAQUE, {"lease_until": SOON}, "a worker is acting on it; if it stops answering, another takes over", SOON),
        (OPAQUE, {}, "a person is asked: Did it happen?", NOW + WAIT_FOR_WORD),
        (KEYED, {}, "its effect is looked up", None),
        (KEYED, {"next_at": SOON}, "its effect is looked up", SOON),
    ],
)
def test_a_started_step_says_what_comes_and_not_before_when(
    contract: Contract, fields: dict[str, Any], words: str, at: datetime | None
) -> None:
    told = only(
        explained([step("pay", StepStatus.STARTED, contract=contract, **fields)], attempts={"pay": [attempt()]})
    )
    assert (told.outlook.words, told.outlook.at) == (words, at)
    assert told.uncertain == "whether attempt 1 took effect"


def test_a_refused_step_is_tried_again_after_its_wait_and_then_somebody_is_asked() -> None:
    refused = [attempt(number, ending=Ending.REFUSED, applied=False) for number in (1, 2, 3)]
    waits = only(explained([step("pay", StepStatus.FAILED, next_at=SOON)], attempts={"pay": refused[:1]}))
    assert (waits.outlook.words, waits.outlook.at) == ("it is executed", SOON)
    over = only(explained([step("pay", StepStatus.FAILED)], attempts={"pay": refused}))
    assert over.outlook.words == "a person is asked: Refused, and no tries left"


def test_a_workflow_that_winds_down_says_so() -> None:
    told = explained([step("pay", StepStatus.STARTED)], winding_down=True, status=WorkflowStatus.EXECUTING)
    assert "only what is in the air is still settled" in told.sentence


def test_a_batch_hides_nothing_behind_what_went_well() -> None:
    states = [*[StepStatus.VERIFIED] * 997, StepStatus.FAILED, StepStatus.FAILED, StepStatus.UNCERTAIN]
    told = explained(step(f"mail_{number}", status) for number, status in enumerate(states))
    assert told.sentence == "997 of 1000 steps are verified (2 failed, 1 uncertain)."


def test_an_unsealed_plan_waits_for_its_agent() -> None:
    told = explained([step("pay", StepStatus.VERIFIED)], status=WorkflowStatus.AWAITING_AGENT)
    assert told.sentence == "1 of 1 steps are verified. It waits for its agent to go on or to seal the plan."


@pytest.mark.parametrize("status", [status for status in StepStatus if status is not StepStatus.PLANNED])
@pytest.mark.parametrize("contract", [OPAQUE, KEYED])
@pytest.mark.parametrize("applied", [True, False, None])
@pytest.mark.parametrize("wait", [None, SOON])
def test_every_step_that_can_move_has_an_outlook(
    status: StepStatus, contract: Contract, applied: bool | None, wait: datetime | None
) -> None:
    tried = AttemptFacts(NOW - timedelta(seconds=60), NOW - timedelta(seconds=30), applied is not None, applied)
    facts = StepFacts(status, attempts=[tried], attempts_allowed=2, next_at=wait, committed_at=NOW)
    told = outlook(facts, contract, Policy(), NOW)
    rests = status in (*STEP_TERMINAL, StepStatus.UNCERTAIN)
    assert bool(told.words) is not rests
    assert told.at is None or told.at > NOW
    if told.at is not None:
        assert outlook(facts, contract, Policy(), told.at).words == told.words, next_action(
            facts, contract, Policy(), told.at
        )


@pytest.mark.parametrize(("allowed", "words"), [(5, "its effect is looked up"), (1, "a person is asked")])
def test_what_comes_next_depends_on_the_budgets_of_the_step(allowed: int, words: str) -> None:
    lost = step(
        "invoice", StepStatus.STARTED, contract=replace(KEYED, recovery=RecoveryClass.QUERYABLE), inspection_count=2
    )
    told = explained([lost], attempts={"invoice": [attempt()]}, budgets={"invoice": Policy(max_inspections=allowed)})
    assert only(told).outlook.words.startswith(words)
