"""Random histories of policies, answers, edits, results and time: what holds about approval after each event."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.withdrawals import withdraw
from checkpoint.clock import now
from checkpoint.edits import EDITABLE
from checkpoint.errors import CheckpointError
from checkpoint.models import Approval, Attempt, Case, Step, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt, Refused
from checkpoint.rows import workflow_rows
from checkpoint.states import (
    CASE_RULES,
    OPEN_REQUESTS,
    WORKFLOW_TERMINAL,
    ApprovalStatus,
    CaseReason,
    CaseStatus,
    StepStatus,
    WorkflowFacts,
    WorkflowStatus,
    workflow_status,
)
from checkpoint.states import Decision as DecisionKind
from checkpoint.turns.calls import Claim
from tests import factories
from tests.approval_driver import answer, approver, in_force
from tests.journal_driver import KEYED, QUERYABLE, JournalDriver, effect, submit
from tests.journal_driver import answer as decide
from tests.test_edits import edit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

EVENTS = 60


class History:
    """One installation to which things happen."""

    def __init__(self, seed: int, time_machine: MovableTime) -> None:
        self.random, self.time = random.Random(seed), time_machine
        self.driver = JournalDriver()
        self.people: list[User] = [approver(name) for name in ("ann", "bob", "cid")]
        self.admin = factories.person("adam", groups=["Admin"])
        self.workflows = [submit(promises, *self._steps()) for promises in (KEYED, QUERYABLE, KEYED)]
        self.calls: list[Claim] = []
        self.cents = 100

    def _steps(self) -> list[dict[str, Any]]:
        left, right = effect("left") | {"position": 2}, effect("right", cents=2) | {"position": 2}
        return [effect("one"), left, right, effect("end")]

    def happen(self) -> str:
        """Something happens; what, or why it was refused."""
        often = [self.turn, self.turn, self.turn, self.respond, self.reply, self.reply]
        seldom = [self.edit, self.policy, self.wait, self.take_back, self.decide]
        event: Callable[[], None] = self.random.choice([*often, *often, *seldom])
        try:
            event()
        except CheckpointError as refusal:
            return f"{event.__name__}: {refusal}"
        return event.__name__

    def turn(self) -> None:
        self.calls += self.driver.turn()

    def respond(self) -> None:
        """A call comes back, or is lost."""
        if self.calls:
            call = self.calls.pop(self.random.randrange(len(self.calls)))
            outcome = self.random.choice([Receipt(), Receipt(), Refused("busy"), OutcomeUnknown("cut off"), None])
            if outcome is not None and call.activity == "execute":
                self.calls += self.driver.report(call, outcome)

    def reply(self) -> None:
        """Somebody answers a request, perhaps one that has moved on."""
        approvals = list(Approval.objects.filter(status__in=OPEN_REQUESTS, part_of=None))
        if approvals:
            kind = self.random.choice([DecisionKind.APPROVE] * 5 + [DecisionKind.REJECT, DecisionKind.REQUEST_CHANGES])
            answer(self.random.choice(approvals), self.random.choice(self.people), kind)

    def edit(self) -> None:
        steps = list(Step.objects.filter(status__in=EDITABLE))
        if steps:
            self.cents += 1
            step = self.random.choice(steps)
            edit(step.workflow, {"customer": "acme", "cents": self.cents}, name=step.name)

    def policy(self) -> None:
        approval = {
            "scope": self.random.choice(["step", "plan"]), "needed": self.random.choice([1, 2]),
            "expires_seconds": 500, "on_timeout": self.random.choice(["expire", "reject"]),
        }  # fmt: skip
        rules = [{"set": {"approval": approval}, "when": {"if": self.random.choice(["true", "arguments.cents > 1"])}}]
        in_force(*self.random.choice([rules, rules, rules, []]))

    def wait(self) -> None:
        self.time.pass_seconds(self.random.choice([1, 40, 200, 600]))

    def take_back(self) -> None:
        approvals = list(Approval.objects.filter(part_of=None))
        if approvals and self.random.random() < 0.3:
            request = self.random.choice(approvals)
            withdraw(approval_id=request.pk, person=self.admin, channel="command", reason="not now")

    def decide(self) -> None:
        cases = list(Case.objects.filter(status=CaseStatus.OPEN))
        if cases:
            case = self.random.choice(cases)
            decide(case, self.random.choice(list(CASE_RULES[CaseReason(case.reason)].decisions)))


def check(history: History) -> None:
    """What holds between any two transactions."""
    for workflow in Workflow.objects.all():
        derived = workflow_rows.facts([workflow.pk], now=now(), held={})[workflow.pk]
        facts = WorkflowFacts(
            derived.steps, derived.open_cases, derived.open_approvals, derived.sent_back, True, workflow.winding_down
        )
        assert workflow.status == workflow_status(facts)
        check_requests(workflow)
    check_calls()


def check_requests(workflow: Workflow) -> None:
    """Waiting for approval and an open request exist together or not at all (S22)."""
    pending = list(workflow.approvals.filter(status=ApprovalStatus.PENDING).select_related("step"))
    if workflow.status == WorkflowStatus.AWAITING_APPROVAL:
        assert pending
    if pending:
        assert workflow.status not in WORKFLOW_TERMINAL
        idle = not workflow.steps.filter(status__in=["started", "committed", "uncertain"]).exists()
        asked = workflow.cases.filter(status="open").exists()
        assert workflow.status == WorkflowStatus.AWAITING_APPROVAL or not idle or asked
    for approval in pending:
        assert approval.step.status in {*EDITABLE, StepStatus.FAILED, StepStatus.STARTED}
        first = approval.part_of or approval
        assert first.status == ApprovalStatus.PENDING
        assert not approval.step.lease_holder_id
    if workflow.status == WorkflowStatus.AWAITING_AGENT:
        assert workflow.approvals.filter(status=ApprovalStatus.RETURNED).exists()


def check_calls() -> None:
    """Nothing is sent for what was put aside, and an approval starts no more than one first attempt (S17)."""
    assert not Attempt.objects.filter(step__status=StepStatus.SUPERSEDED).exists()
    for approval in Approval.objects.filter(status=ApprovalStatus.CONSUMED):
        assert approval.step.attempt_count
        assert Approval.objects.filter(step=approval.step_id, status__in=OPEN_REQUESTS).count() <= 1


@pytest.mark.parametrize("seed", range(4))
def test_s22_whatever_happens_waiting_and_asking_go_together(seed: int, time_machine: MovableTime) -> None:
    history, told = History(seed, time_machine), list[str]()
    for _ in range(EVENTS):
        told.append(history.happen())
        try:
            check(history)
        except AssertionError:
            print(f"seed {seed}:", *told, sep="\n  ")
            raise
