"""What the case page says an answer will do is what the answer does."""

from __future__ import annotations

import pytest

from approvals.consequences import Situation, sentence, title, warning
from approvals.decisions import decide
from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.models import Case, Step, Workflow
from checkpoint.states import CASE_RULES, CaseReason, Decision, StepStatus
from tests import factories

LEGAL = [(reason, kind) for reason in CaseReason for kind in CASE_RULES[reason].decisions]


def contract(recovery: RecoveryClass) -> Contract:
    known = recovery is not RecoveryClass.OPAQUE
    return Contract(recovery=recovery, reversibility=Reversibility.COMPENSABLE, can_inspect=known)


def situation(reason: CaseReason, **fields: object) -> Situation:
    base = {"contract": None, "attempts": 1, "waiting": 2, "happened": 1, "step": "charge_card"}
    return Situation(reason=reason, **{**base, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(("reason", "kind"), LEGAL)
@pytest.mark.parametrize("waiting", [0, 1, 2])
def test_every_legal_answer_has_a_title_and_a_sentence(reason: CaseReason, kind: Decision, waiting: int) -> None:
    for recovery in (None, *RecoveryClass):
        faced = situation(reason, contract=recovery and contract(recovery), waiting=waiting, happened=waiting)
        assert title(reason, kind)
        said = sentence(kind, faced)
        assert said.endswith(".")
        assert "  " not in said


@pytest.mark.parametrize("recovery", RecoveryClass)
def test_a_retry_that_may_double_the_effect_carries_a_warning(recovery: RecoveryClass) -> None:
    faced = situation(CaseReason.OUTCOME_UNKNOWN, contract=contract(recovery))
    warned = bool(warning(Decision.RETRY, faced))
    assert warned == (recovery in {RecoveryClass.OPAQUE, RecoveryClass.QUERYABLE})
    assert not warning(Decision.CONFIRM, faced)
    assert not warning(Decision.RETRY, situation(CaseReason.RETRIES_EXHAUSTED, contract=contract(recovery)))


def answered(kind: Decision) -> tuple[Step, Workflow]:
    """The step and workflow after the answer; one step before it happened, two behind it wait."""
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.VERIFIED)
    step = factories.step(workflow, StepStatus.UNCERTAIN)
    for _ in range(2):
        factories.step(workflow, StepStatus.PLANNED)
    case: Case = factories.case(step)
    decide(
        case_id=case.pk,
        kind=kind,
        person=factories.person("ada", groups=["Approver"], teams=[workflow.team]),
        channel="console",
        reason="I looked.",
        step_version=step.version,
        arguments_hash=step.arguments_hash,
    )
    return Step.objects.get(pk=step.pk), Workflow.objects.get(pk=workflow.pk)


@pytest.mark.usefixtures("database")
def test_confirm_sends_nothing_and_stands_on_the_persons_word() -> None:
    step, _ = answered(Decision.CONFIRM)
    assert (step.status, step.standing, step.attempt_count) == ("committed", "attested", 1)


@pytest.mark.usefixtures("database")
def test_retry_allows_exactly_the_next_attempt_with_the_same_key() -> None:
    step, _ = answered(Decision.RETRY)
    assert (step.status, step.attempt_count, step.attempts_allowed) == ("failed", 1, 2)
    assert step.idempotency_key


@pytest.mark.usefixtures("database")
def test_abandon_winds_the_workflow_down_and_undoes_nothing() -> None:
    step, workflow = answered(Decision.ABANDON)
    assert step.status == "abandoned"
    assert workflow.winding_down
    assert workflow.steps.filter(status="verified").count() == 1
