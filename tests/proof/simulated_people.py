"""Agents and people of a simulation: they submit, give up, answer questions, and have effects undone."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from approvals.decisions import decide
from checkpoint import compensations, workflows
from checkpoint.errors import AlreadyEnding, CompensationRefused, SubmissionInvalid
from checkpoint.models import Case, Step
from checkpoint.planning.documents import Document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import CASE_RULES, WORKFLOW_TERMINAL, CaseReason, CaseStatus, Decision, StepStatus
from tests.proof.simulated_crew import Crew
from tests.proof.simulated_provider import UNDOING
from tests.proof.simulated_world import World
from tests.proof.stage import ACTOR

INTENTS = 3


class People:
    """Whoever is not a machine, in one history."""

    def __init__(self, world: World, crew: Crew) -> None:
        self.world = world
        self.crew = crew
        self.rng = world.rng

    def submit(self) -> None:
        """A workflow of one to four steps, some of them side by side, some for an effect that others want, too."""
        position, steps = 1, []
        for number in range(self.rng.randint(1, 4)):
            position += number > 0 and self.rng.random() < 0.6
            steps.append({"name": f"s{number}", "position": position, **self._wanted(number)})
        document = {"goal": "Be simulated.", "kind": "proof", "prompt_version": "1", "steps": steps}
        plan = parse_plan(Document.of(document), self.world.stage.tools)
        try:
            stored = workflows.submit(plan, team=self.world.stage.team, actor=ACTOR)
        except SubmissionInvalid:
            return  # an effect of that name was undone, or given up
        self.world.workflows.append(stored.pk)
        self.world.ring()

    def abandon_workflow(self) -> None:
        """The agent gives one up."""
        if not self.world.workflows:
            return
        chosen = self.rng.choice(self.world.workflows)
        try:
            workflows.abandon(workflow_id=chosen, actor=ACTOR, reason="changed its mind")
        except AlreadyEnding:
            return

    def undo_something(self) -> None:
        """Somebody has an effect undone."""
        done = Step.objects.filter(
            workflow__in=self.world.workflows, workflow__status__in=WORKFLOW_TERMINAL, status=StepStatus.VERIFIED
        )
        undoable = [step for step in done.order_by("id") if step.tool_version.name in UNDOING]
        if not undoable:
            return
        step = self.rng.choice(undoable)
        try:
            made = compensations.request(step_id=step.pk, step_version=step.version, actor=ACTOR, reason="wrong")
        except CompensationRefused:
            return
        if made.pk not in self.world.workflows:
            self.world.workflows.append(made.pk)
        self.world.ring()

    def answer_a_question(self) -> None:
        """A person looks at the provider's ledger once nothing can land any more, and says what is there."""
        for case in self._open_cases():
            if not self.world.witness.can_be_settled(case, self.crew.workers, self.world.now):
                continue
            kind = _truthful(case, effects=self.world.witness.effects(case.step))
            decide(
                case_id=case.pk, kind=kind, person=self.world.stage.person, channel="command", reason="looked it up",
                step_version=case.step.version, arguments_hash=case.step.arguments_hash,
            )  # fmt: skip
            self.world.ring()
            return

    def are_asked(self) -> bool:
        """Whether a question is open."""
        return bool(self._open_cases())

    def _open_cases(self) -> list[Case]:
        open_cases = Case.objects.filter(workflow__in=self.world.workflows, status=CaseStatus.OPEN)
        return list(open_cases.select_related("step").order_by("id"))

    def _wanted(self, number: int) -> dict[str, Any]:
        tool = self.rng.choice(self.world.tools)
        if self.rng.random() < 0.2:
            named = self.rng.randrange(INTENTS)
            return {"tool": tool, "arguments": {"n": named}, "intent": f"{self.world.begin.timestamp():.0f}/{named}"}
        return {"tool": tool, "arguments": {"n": number}}


def _truthful(case: Case, *, effects: int) -> Decision:
    """What is not to be had any more is given up."""
    legal: Container[Decision] = CASE_RULES[CaseReason(case.reason)].decisions
    wanted = [] if case.reason == CaseReason.PLAN_INVALID else [Decision.CONFIRM] if effects else [Decision.RETRY]
    return next(kind for kind in (*wanted, Decision.ACKNOWLEDGE, Decision.ABANDON) if kind in legal)
