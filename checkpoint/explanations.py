"""Where is it? What is done and on which evidence, what is uncertain, what is asked, what happens next and when.

`explain` is a pure function of loaded records, for the command line and for pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from checkpoint import clock, pinned
from checkpoint.decide import AttemptFacts, Policy, StepFacts
from checkpoint.models import Attempt, Case, Ending, Evidence, Step, Workflow
from checkpoint.outlook import Outlook, outlook
from checkpoint.states import CASE_RULES, WORKFLOW_TERMINAL, CaseReason, CaseStatus, StepStatus, WorkflowStatus

EVIDENCE_SHOWN = 5


@dataclass(frozen=True)
class Records:
    """What an explanation is made of.

    Attributes:
        steps: in the plan's order, with their tool versions.
        attempts: by step, in order.
        evidence: by step, the newest first.
        cases: the open ones, by step, the oldest first.
        now: database time of the reading.
    """

    workflow: Workflow
    steps: Sequence[Step]
    attempts: Mapping[UUID, Sequence[Attempt]]
    evidence: Mapping[UUID, Sequence[Evidence]]
    cases: Mapping[UUID, Sequence[Case]]
    policy: Policy
    now: datetime


@dataclass(frozen=True)
class Observation:
    """One piece of evidence."""

    kind: str
    finding: str
    source: str
    standing: str
    operation_id: str
    observed_at: datetime


@dataclass(frozen=True)
class Question:
    """A case that waits for a person, and the answers that it allows."""

    id: UUID
    reason: str
    sentence: str
    decisions: list[str]
    opened_at: datetime


@dataclass(frozen=True)
class StepExplanation:
    """One step. `uncertain` says what is not known about its effect; empty where all is known."""

    name: str
    position: int
    tool: str
    status: str
    standing: str
    operation_id: str
    attempts: int
    evidence: list[Observation]
    uncertain: str
    questions: list[Question]
    outlook: Outlook


@dataclass(frozen=True)
class Explanation:
    """One workflow."""

    id: UUID
    kind: str
    goal: str
    status: str
    sentence: str
    steps: list[StepExplanation]


def load(workflow: Workflow) -> Records:
    """Reads what `explain` needs, without payloads."""
    steps = workflow.steps.select_related("tool_version").defer("template", "arguments", "tool_version__schema")
    return Records(
        workflow=workflow,
        steps=list(steps.order_by("position", "name")),
        attempts=_by_step(Attempt.objects.filter(step__workflow=workflow).order_by("number")),
        evidence=_by_step(Evidence.objects.filter(step__workflow=workflow).defer("facts").order_by("-id")),
        cases=_by_step(workflow.cases.filter(status=CaseStatus.OPEN).order_by("opened_at")),
        policy=pinned.policy(workflow.policy_version_id),
        now=clock.now(),
    )


def _by_step[Row: (Attempt, Evidence, Case)](rows: Iterable[Row]) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        found.setdefault(row.step_id, []).append(row)
    return found


def explain(records: Records) -> Explanation:
    """The explanation of a workflow."""
    workflow = records.workflow
    front = min((step.position for step in records.steps if step.status != StepStatus.VERIFIED), default=0)
    return Explanation(
        id=workflow.pk,
        kind=workflow.kind,
        goal=workflow.goal,
        status=workflow.status,
        sentence=_sentence(records),
        steps=[_explain_step(step, records, front) for step in records.steps],
    )


def _sentence(records: Records) -> str:
    workflow, questions = records.workflow, sum(map(len, records.cases.values()))
    done = sum(step.status == StepStatus.VERIFIED for step in records.steps)
    parts = [f"{done} of {len(records.steps)} steps are verified."]
    if questions:
        parts.append("1 question to a person is open." if questions == 1 else f"{questions} questions are open.")
    if workflow.winding_down and workflow.status not in WORKFLOW_TERMINAL:
        parts.append("It was abandoned, and only what is in the air is still settled.")
    if workflow.status == WorkflowStatus.AWAITING_AGENT:
        parts.append("It waits for its agent to go on or to seal the plan.")
    return " ".join(parts)


def _explain_step(step: Step, records: Records, front: int) -> StepExplanation:
    attempts = [_attempt_facts(attempt) for attempt in records.attempts.get(step.pk, [])]
    return StepExplanation(
        name=step.name,
        position=step.position,
        tool=str(step.tool_version),
        status=step.status,
        standing=step.standing,
        operation_id=step.operation_id,
        attempts=len(attempts),
        evidence=[_observation(seen) for seen in records.evidence.get(step.pk, [])[:EVIDENCE_SHOWN]],
        uncertain=_uncertain(step, attempts),
        questions=[_question(case) for case in records.cases.get(step.pk, [])],
        outlook=_outlook(step, attempts, records, front),
    )


def _outlook(step: Step, attempts: list[AttemptFacts], records: Records, front: int) -> Outlook:
    if step.pk in records.cases:
        return Outlook("a person answers the open question")
    if step.status in (StepStatus.VERIFIED, StepStatus.ABANDONED):
        return Outlook("")
    if step.position > front:
        return Outlook(f"its turn comes when every step at position {front} is verified")
    contract = step.tool_version.contract(step.variant) if step.variant else None
    return outlook(_step_facts(step, attempts), contract, records.policy, records.now)


def _uncertain(step: Step, attempts: list[AttemptFacts]) -> str:
    unknown = [str(number) for number, attempt in enumerate(attempts, 1) if attempt.applied is None]
    if unknown and step.status in (StepStatus.STARTED, StepStatus.UNCERTAIN):
        return f"whether attempt {' and '.join(unknown)} took effect"
    if step.status in (StepStatus.COMMITTED, StepStatus.UNCERTAIN):
        return "whether the outcome can be read where it should be"
    return ""


def _step_facts(step: Step, attempts: list[AttemptFacts]) -> StepFacts:
    return StepFacts(
        status=StepStatus(step.status),
        lease_until=step.lease_until,
        attempts=attempts,
        attempts_allowed=step.attempts_allowed,
        inspection_count=step.inspection_count,
        next_at=step.next_at,
        committed_at=step.committed_at,
    )


def _attempt_facts(attempt: Attempt) -> AttemptFacts:
    returned = attempt.ending in (Ending.RECEIPT, Ending.REFUSED, Ending.UNKNOWN)
    return AttemptFacts(attempt.started_at, attempt.deadline_at, returned, attempt.applied)


def _observation(evidence: Evidence) -> Observation:
    return Observation(
        kind=evidence.kind,
        finding=evidence.finding,
        source=evidence.source,
        standing=evidence.standing,
        operation_id=evidence.operation_id,
        observed_at=evidence.observed_at,
    )


def _question(case: Case) -> Question:
    decisions = [decision.value for decision in CASE_RULES[CaseReason(case.reason)].decisions]
    return Question(case.pk, case.reason, case.sentence, decisions, case.opened_at)
