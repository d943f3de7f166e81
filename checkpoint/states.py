"""Every state, every arrow, and what each question to a person allows. The one table that all else is checked against.

The django-fsm methods, the PostgreSQL triggers, the charts in `docs/` and the tests read these tables. A state that is
not here does not exist; an arrow that is not here is refused by Python with a message and by PostgreSQL without appeal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class WorkflowStatus(StrEnum):
    """Where a workflow is. Always the value of `workflow_status`, never set by hand."""

    PLANNED = "planned"
    AWAITING_APPROVAL = "awaiting_approval"
    EXECUTING = "executing"
    VERIFYING = "verifying"
    AWAITING_AGENT = "awaiting_agent"
    FAILED_RETRYABLE = "failed_retryable"
    NEEDS_REVIEW = "needs_review"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


class StepStatus(StrEnum):
    """Where one intended effect is."""

    PLANNED = "planned"
    PREPARED = "prepared"
    STARTED = "started"
    COMMITTED = "committed"
    VERIFIED = "verified"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"


class CaseStatus(StrEnum):
    """A question is open until a person or evidence settles it."""

    OPEN = "open"
    DECIDED = "decided"
    SETTLED = "settled"


class ApprovalStatus(StrEnum):
    """Permission given before execution, and the ways in which it ends."""

    PENDING = "pending"
    APPROVED = "approved"
    CONSUMED = "consumed"
    REJECTED = "rejected"
    RETURNED = "returned"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"


class Standing(StrEnum):
    """How well a fact is known."""

    VERIFIED = "verified"
    RECEIPT_ONLY = "receipt_only"
    ATTESTED = "attested"
    COMMITTED = "committed"
    UNTRUSTED = "untrusted"


class Decision(StrEnum):
    """What a person can answer, to a case or (the last three) to a request for approval."""

    CONFIRM = "confirm"
    RETRY = "retry"
    ABANDON = "abandon"
    CONTINUE = "continue"
    ACKNOWLEDGE = "acknowledge"
    ANSWER = "answer"
    APPROVE = "approve"
    REJECT = "reject"
    REQUEST_CHANGES = "request_changes"


class CaseReason(StrEnum):
    """Why the system stopped and asks."""

    OUTCOME_UNKNOWN = "outcome_unknown"
    INSPECTION_INCONCLUSIVE = "inspection_inconclusive"
    EFFECT_NOT_VISIBLE = "effect_not_visible"
    CONFLICTING_EFFECT = "conflicting_effect"
    DUPLICATE_EFFECT = "duplicate_effect"
    RETRIES_EXHAUSTED = "retries_exhausted"
    POLICY_CHANGED = "policy_changed"
    PROMPT_CHANGED = "prompt_changed"
    TOOL_CHANGED = "tool_changed"
    ARTIFACT_MISMATCH = "artifact_mismatch"
    COMPENSATION_FAILED = "compensation_failed"
    PLAN_INVALID = "plan_invalid"
    RECORD_DAMAGED = "record_damaged"
    HUMAN_TASK = "human_task"
    AGENT_SILENT = "agent_silent"


W, S, D = WorkflowStatus, StepStatus, Decision

WORKFLOW_INITIAL = frozenset({W.PLANNED})
WORKFLOW_TERMINAL = frozenset({W.COMPLETED, W.ABANDONED})
_WORKFLOW_OPEN = frozenset(W) - WORKFLOW_TERMINAL

# A workflow's status is derived from its steps, and one transaction may record and claim; so among the open states
# nearly every move can happen. Not these: from a plan of which nothing ran into what only a finished call leads to,
# and back to it, but from a question that was answered before anything ran; and from waiting for the agent into what
# takes a call. Exactly the moves that one transaction can cause are here (tests/test_states.py tries them all).
_STILL_UNSTARTED = frozenset({W.EXECUTING, W.NEEDS_REVIEW, W.ABANDONED})
_FROM_STARTED = (_WORKFLOW_OPEN | WORKFLOW_TERMINAL) - {W.PLANNED}
WORKFLOW_ARROWS: Mapping[WorkflowStatus, frozenset[WorkflowStatus]] = {
    # To its end without a call: the effects that it names were brought about by another workflow.
    W.PLANNED: _STILL_UNSTARTED | {W.AWAITING_APPROVAL, W.AWAITING_AGENT, W.COMPLETED},
    # Also a step that failed can wait for approval, and then its receipt comes late.
    W.AWAITING_APPROVAL: (_FROM_STARTED | {W.PLANNED}) - {W.AWAITING_APPROVAL},
    W.EXECUTING: _FROM_STARTED - {W.EXECUTING},
    W.VERIFYING: _FROM_STARTED - {W.VERIFYING},
    # Also a step that failed can be the agent's to try again, and then its receipt comes late.
    W.AWAITING_AGENT: (_FROM_STARTED | {W.PLANNED}) - {W.AWAITING_AGENT},
    W.FAILED_RETRYABLE: _FROM_STARTED - {W.FAILED_RETRYABLE},
    W.NEEDS_REVIEW: (_FROM_STARTED | {W.PLANNED}) - {W.NEEDS_REVIEW},
    W.COMPLETED: frozenset(),
    W.ABANDONED: frozenset(),
}

STEP_INITIAL = frozenset({S.PLANNED, S.PREPARED})
STEP_TERMINAL = frozenset({S.VERIFIED, S.ABANDONED, S.SUPERSEDED})
STEP_ARROWS: Mapping[StepStatus, frozenset[StepStatus]] = {
    # -> superseded: an edit put another step into its place, before anything was sent.
    S.PLANNED: frozenset({S.PREPARED, S.ABANDONED, S.SUPERSEDED}),
    # prepared -> verified: another step has brought about the effect that both name, and its receipt is taken.
    S.PREPARED: frozenset({S.STARTED, S.VERIFIED, S.ABANDONED, S.SUPERSEDED}),
    S.STARTED: frozenset({S.COMMITTED, S.FAILED, S.UNCERTAIN}),
    S.COMMITTED: frozenset({S.VERIFIED, S.UNCERTAIN}),
    # failed -> committed: a late receipt, or a person's confirmation, shows that the effect took place after all.
    S.FAILED: frozenset({S.STARTED, S.COMMITTED, S.ABANDONED}),
    S.UNCERTAIN: frozenset({S.COMMITTED, S.VERIFIED, S.FAILED, S.ABANDONED}),
    S.VERIFIED: frozenset(),
    S.ABANDONED: frozenset(),
    S.SUPERSEDED: frozenset(),
}

CASE_INITIAL = frozenset({CaseStatus.OPEN})
CASE_ARROWS: Mapping[CaseStatus, frozenset[CaseStatus]] = {
    CaseStatus.OPEN: frozenset({CaseStatus.DECIDED, CaseStatus.SETTLED}),
    CaseStatus.DECIDED: frozenset(),
    CaseStatus.SETTLED: frozenset(),
}


A = ApprovalStatus
APPROVAL_INITIAL = frozenset({A.PENDING})
OPEN_REQUESTS = frozenset({A.PENDING, A.APPROVED, A.RETURNED})  # asked for, given and not used, or sent back
_APPROVAL_ENDS = frozenset({A.EXPIRED, A.WITHDRAWN, A.SUPERSEDED})
APPROVAL_ARROWS: Mapping[ApprovalStatus, frozenset[ApprovalStatus]] = {
    A.PENDING: _APPROVAL_ENDS | {A.APPROVED, A.REJECTED, A.RETURNED},
    A.APPROVED: _APPROVAL_ENDS | {A.CONSUMED},
    # Until the agent changes what was sent back, nothing of it runs.
    A.RETURNED: frozenset({A.SUPERSEDED, A.WITHDRAWN}),
    **{status: frozenset() for status in (A.CONSUMED, A.REJECTED, *_APPROVAL_ENDS)},
}


@dataclass(frozen=True)
class CaseRule:
    """What holds while a case of one reason is open, and what a person may answer.

    Attributes:
        title: the reason in a few words, for lists.
        step_status: the step's status while the case is open; None leaves it as it is.
        decisions: each legal decision with the step status it leads to; None leaves it as it is.
    """

    title: str
    step_status: StepStatus | None
    decisions: Mapping[Decision, StepStatus | None]


_OUTCOME_DECISIONS = {D.CONFIRM: S.COMMITTED, D.RETRY: S.FAILED, D.ABANDON: S.ABANDONED}
_DRIFT_DECISIONS = {D.CONTINUE: None, D.ABANDON: S.ABANDONED}

CASE_RULES: Mapping[CaseReason, CaseRule] = {
    CaseReason.OUTCOME_UNKNOWN: CaseRule("Did it happen?", S.UNCERTAIN, _OUTCOME_DECISIONS),
    CaseReason.INSPECTION_INCONCLUSIVE: CaseRule("The lookup cannot tell", S.UNCERTAIN, _OUTCOME_DECISIONS),
    CaseReason.EFFECT_NOT_VISIBLE: CaseRule(
        "Reported done, but not visible", S.UNCERTAIN, {**_OUTCOME_DECISIONS, D.CONFIRM: S.VERIFIED}
    ),
    CaseReason.CONFLICTING_EFFECT: CaseRule(
        "Found with other arguments", S.UNCERTAIN, {D.CONFIRM: S.COMMITTED, D.ABANDON: S.ABANDONED}
    ),
    CaseReason.DUPLICATE_EFFECT: CaseRule("It may have happened twice", None, {D.ACKNOWLEDGE: None}),
    CaseReason.RETRIES_EXHAUSTED: CaseRule(
        "Refused, and no tries left", S.FAILED, {D.RETRY: None, D.CONFIRM: S.COMMITTED, D.ABANDON: S.ABANDONED}
    ),
    CaseReason.POLICY_CHANGED: CaseRule("The policy changed", None, _DRIFT_DECISIONS),
    CaseReason.PROMPT_CHANGED: CaseRule("The prompt changed", None, _DRIFT_DECISIONS),
    CaseReason.TOOL_CHANGED: CaseRule("The tool changed", None, _DRIFT_DECISIONS),
    CaseReason.ARTIFACT_MISMATCH: CaseRule(
        "An artifact is not what it was", None, {D.RETRY: None, D.ABANDON: S.ABANDONED}
    ),
    CaseReason.COMPENSATION_FAILED: CaseRule(
        "Undoing it failed", S.FAILED, {D.RETRY: None, D.CONFIRM: S.COMMITTED, D.ABANDON: S.ABANDONED}
    ),
    CaseReason.PLAN_INVALID: CaseRule("The plan cannot go on", S.PLANNED, {D.RETRY: None, D.ABANDON: S.ABANDONED}),
    CaseReason.RECORD_DAMAGED: CaseRule(
        "A record does not match its hash", None, {D.RETRY: None, D.ABANDON: S.ABANDONED}
    ),
    # The answer is the effect: the step is started, committed and verified by it, in one transaction.
    CaseReason.HUMAN_TASK: CaseRule(
        "Somebody is to answer", S.PREPARED, {D.ANSWER: S.VERIFIED, D.ABANDON: S.ABANDONED}
    ),
    # About the plan; the step is where it came to rest. Whoever may submit can also append to the plan, or seal it.
    CaseReason.AGENT_SILENT: CaseRule("Its agent does not go on", None, {D.CONTINUE: None, D.ABANDON: None}),
}


@dataclass(frozen=True)
class WorkflowFacts:
    """All that a workflow's status depends on.

    Attributes:
        steps: number of steps in each status.
        open_cases: questions to people that are open and hold the workflow up.
        open_approvals: approvals that are asked for and not given.
        sent_back: steps that the agent was asked to change.
        sealed: the agent will append no more steps.
        winding_down: a person or the agent ended the workflow; what is in the air is still settled.
        agents_turn: steps that the agent carries out itself, whose turn it is; 0 while anybody else can do something.
    """

    steps: Mapping[StepStatus, int]
    open_cases: int = 0
    open_approvals: int = 0
    sent_back: int = 0
    sealed: bool = True
    winding_down: bool = False
    agents_turn: int = 0

    def count(self, *statuses: StepStatus) -> int:
        """Number of steps in any of the statuses."""
        return sum(self.steps.get(status, 0) for status in statuses)

    @property
    def waived(self) -> int:
        """Number of steps without which the plan goes on, each by a recorded decision (`models.Waiver`).

        In a workflow that is not ending, nothing else ends a step before it took effect.
        """
        return 0 if self.winding_down else self.count(StepStatus.ABANDONED)

    @property
    def plan(self) -> int:
        """Number of steps that the plan has; what an edit put aside is none of them."""
        return sum(self.steps.values()) - self.count(StepStatus.SUPERSEDED)


UNSETTLED = frozenset({S.STARTED, S.COMMITTED, S.UNCERTAIN})


def workflow_status(facts: WorkflowFacts) -> WorkflowStatus:
    """The status that a workflow with these facts has (DESIGN.md section 2). The only such function."""
    if facts.winding_down and not facts.count(*UNSETTLED):
        return W.ABANDONED
    if facts.open_cases or facts.count(S.UNCERTAIN):
        return W.NEEDS_REVIEW
    if facts.count(S.STARTED):
        return W.EXECUTING
    if facts.count(S.COMMITTED):
        return W.VERIFYING
    if facts.count(S.VERIFIED) + facts.waived == facts.plan:
        return W.COMPLETED if facts.sealed else W.AWAITING_AGENT
    return _with_nothing_in_the_air(facts)


def _with_nothing_in_the_air(facts: WorkflowFacts) -> WorkflowStatus:
    if facts.open_approvals:
        return W.AWAITING_APPROVAL
    if facts.agents_turn:
        return W.AWAITING_AGENT
    if facts.count(S.FAILED):
        return W.FAILED_RETRYABLE
    if facts.sent_back:
        return W.AWAITING_AGENT
    return W.EXECUTING if facts.count(S.VERIFIED) or facts.waived else W.PLANNED
