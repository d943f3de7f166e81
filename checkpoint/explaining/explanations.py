"""Where is it? What is done and on which evidence, what is uncertain, what is asked, what happens next and when.

`explain` is a pure function of loaded records, for the command line and for pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from checkpoint.actions import AttemptFacts, StepFacts
from checkpoint.explaining.outlook import Outlook, outlook
from checkpoint.explaining.step_counts import WAIVED, Counts, PlanCounts, of_steps
from checkpoint.explaining.tries import budget_in_words
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Approval, Case, Evidence, Step, Workflow
from checkpoint.rows.attempt_log import facts_of
from checkpoint.rows.workflow_records import Records, front_position
from checkpoint.states import (
    CASE_RULES,
    STEP_TERMINAL,
    WORKFLOW_TERMINAL,
    ApprovalStatus,
    CaseReason,
    StepStatus,
    WorkflowStatus,
)

EVIDENCE_SHOWN = 5
_WORTH_A_WORD = (StepStatus.FAILED, StepStatus.UNCERTAIN, StepStatus.ABANDONED, WAIVED)
_TO_START = (StepStatus.PLANNED, StepStatus.PREPARED, StepStatus.FAILED)


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
class Request:
    """Permission that the step needs before it runs; `id` is the request's that people answer."""

    id: UUID
    status: str
    sentence: str
    answer_by: datetime


@dataclass(frozen=True)
class StepExplanation:
    """One step. `uncertain` says what is not known about its effect, `tries` how much of the budget is used.

    `waived` says why its plan goes on without it. Each is empty where there is nothing to say.
    """

    name: str
    position: int
    tool: str
    status: str
    standing: str
    operation_id: str
    intent: str
    compensation: str
    attempts: int
    tries: str
    evidence: list[Observation]
    uncertain: str
    waived: str
    questions: list[Question]
    request: Request | None
    outlook: Outlook


@dataclass(frozen=True)
class Explanation:
    """One workflow. `partial` says that its plan went on without some of its steps."""

    id: UUID
    kind: str
    goal: str
    status: str
    partial: bool
    sentence: str
    counts: PlanCounts
    steps: list[StepExplanation]


def explain(records: Records) -> Explanation:
    """The explanation of a workflow."""
    workflow = records.workflow
    front = front_position(records.steps)
    counts = _counts(records)
    return Explanation(
        id=workflow.pk,
        kind=workflow.kind,
        goal=workflow.goal,
        status=workflow.status,
        partial=bool(counts.plan.waived),
        sentence=_sentence(records, counts.plan),
        counts=counts,
        steps=[_explain_step(step, records, front) for step in records.steps],
    )


def _sentence(records: Records, counts: Counts) -> str:
    workflow, questions = records.workflow, sum(map(len, records.cases.values()))
    done = counts.by_state.get(StepStatus.VERIFIED, 0)
    parts = [f"{done} of {counts.total} steps are verified{_others(counts)}."]
    if counts.waived:
        parts.append(_in_part(workflow, counts.waived))
    if questions:
        parts.append("1 question to a person is open." if questions == 1 else f"{questions} questions are open.")
    asked = {each.part_of_id or each.pk for each in records.requests.values() if each.status == ApprovalStatus.PENDING}
    if asked:
        parts.append(
            "1 request for approval is open." if len(asked) == 1 else f"{len(asked)} requests for approval are open."
        )
    if workflow.winding_down and workflow.status not in WORKFLOW_TERMINAL:
        parts.append("It was abandoned, and only what is in the air is still settled.")
    if workflow.status == WorkflowStatus.AWAITING_AGENT:
        parts.append(f"It waits for its agent to {_turn(records)}.")
        if workflow.agent_due_at is not None:
            due_at = f"{workflow.agent_due_at:%Y-%m-%d %H:%M:%S} UTC"
            parts.append(f"If that has not happened by {due_at}, a person is asked.")
    return " ".join(parts)


def _turn(records: Records) -> str:
    """What the agent is to do."""
    front = front_position(records.steps)
    begins = any(each.by_agent and each.position == front and each.status in _TO_START for each in records.steps)
    sent_back = any(each.status == ApprovalStatus.RETURNED for each in records.requests.values())
    return "change a step" if sent_back else "carry out a step" if begins else "go on or to seal the plan"


def _counts(records: Records) -> PlanCounts:
    waived = records.waivers
    return of_steps((step.position, WAIVED if step.pk in waived else step.status, 1) for step in records.steps)


def _in_part(workflow: Workflow, waived: int) -> str:
    """That the result is partial, or will be."""
    without = "a step, which was" if waived == 1 else f"{waived} steps, which were"
    if workflow.status == WorkflowStatus.COMPLETED:
        return f"It is completed in part, without {without} waived."
    return f"It goes on without {without} waived."


def _others(counts: Counts) -> str:
    """What a batch must not hide behind what went well: " (2 failed, 1 uncertain)"."""
    named = [f"{counts.by_state[state]} {state}" for state in _WORTH_A_WORD if counts.by_state.get(state)]
    return f" ({', '.join(named)})" if named else ""


def _explain_step(step: Step, records: Records, front: int) -> StepExplanation:
    attempts = [facts_of(attempt) for attempt in records.attempts.get(step.pk, [])]
    return StepExplanation(
        name=step.name,
        position=step.position,
        tool=str(step.tool_version),
        status=step.status,
        standing=step.standing,
        operation_id=step.operation_id,
        intent=step.intent_name,
        compensation=_compensation(step, records),
        attempts=len(attempts),
        tries=_tries(step, attempts, records),
        evidence=[_observation(seen) for seen in records.evidence.get(step.pk, [])[:EVIDENCE_SHOWN]],
        uncertain=_uncertain(step, attempts),
        waived=records.waivers.get(step.pk, ""),
        questions=[_question(case) for case in records.cases.get(step.pk, [])],
        request=_request(records.requests.get(step.pk)),
        outlook=_outlook(step, attempts, records, front),
    )


def _tries(step: Step, attempts: list[AttemptFacts], records: Records) -> str:
    """Only where it matters whether it is tried again."""
    waits = step.status in (StepStatus.STARTED, StepStatus.FAILED, StepStatus.UNCERTAIN)
    policy = records.budgets.get(step.pk, records.policy)
    return budget_in_words(_step_facts(step, attempts), policy) if waits else ""


def _compensation(step: Step, records: Records) -> str:
    """What it undoes, or what undoes it."""
    if step.compensates is not None:
        return f"undoes step {step.compensates.name} of workflow {step.compensates.workflow_id}"
    if undone := records.undone_by.get(step.pk):
        return f"undone by workflow {undone.workflow_id} (step {undone.name}: {undone.status})"
    return ""


def _outlook(step: Step, attempts: list[AttemptFacts], records: Records, front: int) -> Outlook:
    if step.pk in records.cases:
        return Outlook("a person answers the open question")
    if step.status in STEP_TERMINAL:
        return Outlook("")
    if step.position > front:
        return Outlook(f"its turn comes when every step at position {front} is verified")
    if owner := records.owners.get(step.pk):
        return Outlook(f"waits for step {owner.name} of workflow {owner.workflow_id}, which has the same intent")
    request = records.requests.get(step.pk)
    if request is not None and request.status == ApprovalStatus.PENDING:
        return Outlook("people say whether it may run")
    if request is not None and request.status == ApprovalStatus.RETURNED:
        return Outlook("its agent changes it")
    if records.workflow.held_by == step.tool_version.name and step.status in _TO_START:
        return Outlook(f"it starts when the limits of {step.tool_version.name} leave a place")
    contract = step.tool_version.contract(step.variant) if step.variant else None
    policy = records.budgets.get(step.pk, records.policy)
    return outlook(_step_facts(step, attempts), contract, policy, records.now)


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


def _request(approval: Approval | None) -> Request | None:
    if approval is None:
        return None
    rule, plan = ApprovalRule.from_json(approval.rule), " for the whole plan" if approval.plan_hash else ""
    sentence = f"it may run{plan}"
    if approval.status == ApprovalStatus.PENDING:
        sentence = f"{rule.needed} of {' or '.join(rule.groups)} must allow it{plan}"
    if approval.status == ApprovalStatus.RETURNED:
        sentence = approval.closing
    return Request(approval.part_of_id or approval.pk, approval.status, sentence, approval.expires_at)
