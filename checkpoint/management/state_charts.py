"""Draws `states.py` as a page that a code host renders: charts, the table of a workflow's moves, the table of cases.

The words are here, the states and arrows are not; a test asks for words on every one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from checkpoint import states
from checkpoint.states import ApprovalStatus, CaseRule, CaseStatus, Decision, StepStatus, WorkflowStatus

W, S, C, A = WorkflowStatus, StepStatus, CaseStatus, ApprovalStatus

_INTRODUCTION = """\
# States

Made from `checkpoint/states.py` by `manage.py state_charts`; a test says when it is out of date. What is not an arrow
here, Python refuses with a message and PostgreSQL without appeal, from raw SQL too.
"""

# In the order in which `workflow_status` asks; the first that holds is the status.
_WORKFLOW = {
    W.ABANDONED: "a person or the agent ended it, and nothing is `started`, `committed` or `uncertain` any more",
    W.NEEDS_REVIEW: "a case is open",
    W.EXECUTING: "a call is on its way; or, where nothing else here holds, some steps are verified and more follow",
    W.VERIFYING: "an effect took place and its outcome is being read",
    W.COMPLETED: "every step is verified or waived on record, and the agent appends no more",
    W.AWAITING_AGENT: "every step is verified or waived, and more may follow; or the agent is to change or make one",
    W.AWAITING_APPROVAL: "permission is asked for and not given",
    W.FAILED_RETRYABLE: "a step failed and is tried again",
    W.PLANNED: "nothing has been started",
}

_STEP = {
    S.PLANNED: "its arguments still refer to earlier results",
    S.PREPARED: "arguments resolved, key fixed, written ahead; nothing has left this system",
    S.STARTED: "the effect may have happened",
    S.COMMITTED: "the effect took place; perhaps it is not visible yet",
    S.VERIFIED: "the outcome was read, or stands on its receipt or a person's word, and says so",
    S.FAILED: "every attempt is held not to have taken effect",
    S.UNCERTAIN: "a person is asked about the outcome",
    S.ABANDONED: "it ends without its effect being wanted, or was waived: its plan goes on without it",
    S.SUPERSEDED: "an edit put another step into its place; nothing of it was sent, and its key is closed",
}

_STEP_ARROWS = {
    (S.PLANNED, S.PREPARED): "write ahead",
    (S.PLANNED, S.ABANDONED): "abandon, or waive",
    (S.PLANNED, S.SUPERSEDED): "edit",
    (S.PREPARED, S.STARTED): "claim",
    (S.PREPARED, S.ABANDONED): "abandon",
    (S.PREPARED, S.SUPERSEDED): "edit",
    (S.STARTED, S.COMMITTED): "receipt, or found by lookup",
    (S.STARTED, S.FAILED): "every attempt refused or proved absent",
    (S.STARTED, S.UNCERTAIN): "nobody can know",
    (S.COMMITTED, S.VERIFIED): "outcome read",
    (S.COMMITTED, S.UNCERTAIN): "outcome stays invisible",
    (S.PREPARED, S.VERIFIED): "receipt of the same intent's owner",
    (S.FAILED, S.STARTED): "claim, same key",
    (S.FAILED, S.COMMITTED): "late receipt, or confirm",
    (S.FAILED, S.ABANDONED): "abandon, or waive",
    (S.UNCERTAIN, S.COMMITTED): "confirm, or late receipt",
    (S.UNCERTAIN, S.VERIFIED): "confirm what was reported",
    (S.UNCERTAIN, S.FAILED): "retry, or late refusal",
    (S.UNCERTAIN, S.ABANDONED): "abandon",
}

_CASE_ARROWS = {
    (C.OPEN, C.DECIDED): "a person answers",
    (C.OPEN, C.SETTLED): "evidence answers, or the step moved on",
}

_APPROVAL_ENDS = {
    A.EXPIRED: "nobody answered or used it in time",
    A.WITHDRAWN: "no longer wanted",
    A.SUPERSEDED: "what it was asked for changed",
}
_APPROVAL_ARROWS = {
    (A.PENDING, A.APPROVED): "enough people approve",
    (A.PENDING, A.REJECTED): "a person rejects",
    (A.PENDING, A.RETURNED): "a person asks for changes",
    (A.APPROVED, A.CONSUMED): "the first attempt starts",
    (A.RETURNED, A.SUPERSEDED): "the agent changes it",
    (A.RETURNED, A.WITHDRAWN): "no longer wanted",
    **{(source, end): words for source in (A.PENDING, A.APPROVED) for end, words in _APPROVAL_ENDS.items()},
}


def page() -> str:
    """The whole page, as Markdown with Mermaid charts."""
    return "\n".join([_INTRODUCTION, *_workflow(), *_steps(), *_cases(), *_approvals()])


def _workflow() -> Iterator[str]:
    yield "## Workflow\n"
    yield "Its status is never set by hand: it follows from its steps, cases and approvals. The first of these that"
    yield "holds is the status.\n"
    yield from _table(("status", "while"), ((f"`{status}`", words) for status, words in _WORKFLOW.items()))
    yield "\nFrom the status of a row it can change to those that are marked. One transaction may record and claim, so"
    yield "most changes can happen.\n"
    yield from _table(
        ("from \\ to", *(f"`{status}`" for status in W)),
        ((f"`{status}`", *("●" if to in states.WORKFLOW_ARROWS[status] else "" for to in W)) for status in W),
    )
    yield ""


def _steps() -> Iterator[str]:
    yield "## Step\n"
    yield from _chart(S, states.STEP_INITIAL, states.STEP_ARROWS, _STEP_ARROWS)
    yield from _table(("status", "what is true"), ((f"`{status}`", _STEP[status]) for status in S))
    yield ""


def _cases() -> Iterator[str]:
    yield "## Case\n"
    yield from _chart(C, states.CASE_INITIAL, states.CASE_ARROWS, _CASE_ARROWS)
    yield "What each reason asks, the step's status while the case is open, and where each answer leads. Where no"
    yield "status is named, the step stays where it is.\n"
    rows = ((f"`{reason}`", *_rule(states.CASE_RULES[reason])) for reason in states.CaseReason)
    yield from _table(("reason", "question", "step", "answers"), rows)
    yield ""


def _rule(rule: CaseRule) -> tuple[str, str, str]:
    answers = ", ".join(_answer(decision, target) for decision, target in rule.decisions.items())
    return rule.title, f"`{rule.step_status}`" if rule.step_status else "", answers


def _answer(decision: Decision, target: StepStatus | None) -> str:
    return f"{decision} → `{target}`" if target else f"{decision}"


def _approvals() -> Iterator[str]:
    yield "## Approval\n"
    yield from _chart(A, states.APPROVAL_INITIAL, states.APPROVAL_ARROWS, _APPROVAL_ARROWS)


def _chart[T: StrEnum](
    every: type[T], initial: Iterable[T], arrows: Mapping[T, frozenset[T]], words: Mapping[tuple[T, T], str]
) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield from (f"    [*] --> {state}" for state in every if state in set(initial))
    for source in every:
        yield from (f"    {source} --> {to}: {words[source, to]}" for to in every if to in arrows[source])
    yield from (f"    {state} --> [*]" for state in every if not arrows[state])
    yield "```\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |"
