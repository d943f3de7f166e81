"""Of two rulings the stricter, field by field. Plain Python.

Two things need it: a rule whose condition cannot be evaluated may only tighten, and a plan is approved by the
strictest approval among its steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from checkpoint.budgets import Policy
from checkpoint.contracts import Reversibility
from checkpoint.gates.rulings import (
    ApprovalRule,
    BatchRule,
    DecisionRule,
    Decisions,
    DriftRule,
    Limits,
    OnTimeout,
    Ruling,
    Scope,
    StepDescription,
)
from checkpoint.states import Decision

# Budgets: a person is asked sooner, and the machine waits longer between its tries.
_SMALLER_IS_STRICTER = ("max_attempts", "max_inspections", "retry_deadline", "verification_deadline", "agent_deadline")


def strictest(before: Ruling, after: Ruling) -> Ruling:
    """Both rulings in one. Where groups have nobody in common, those of `after` count."""
    return Ruling(
        budgets=_budgets(before.budgets, after.budgets),
        approval=strictest_approval(before.approval, after.approval),
        decisions=_decisions(before.decisions, after.decisions),
        limits=_limits(before.limits, after.limits),
        drift=DriftRule(
            policy=_later(before.drift.policy, after.drift.policy),
            prompt=_later(before.drift.prompt, after.drift.prompt),
            tool=_later(before.drift.tool, after.drift.tool),
        ),
        batch=BatchRule(on_failure=_later(before.batch.on_failure, after.batch.on_failure)),
        step_up=before.step_up or after.step_up,
    )


def strictest_approval(before: ApprovalRule | None, after: ApprovalRule | None) -> ApprovalRule | None:
    """Both approvals in one; as `strictest`."""
    if before is None or after is None:
        return before or after
    on_timeout = _later(before.on_timeout, after.on_timeout)
    escalates = on_timeout is OnTimeout.ESCALATE
    return ApprovalRule(
        scope=_later(before.scope, after.scope),
        needed=max(before.needed, after.needed),
        groups=_groups(before.groups, after.groups),
        self_approval=before.self_approval and after.self_approval,
        wait_seconds=max(before.wait_seconds, after.wait_seconds),
        expires_seconds=min(before.expires_seconds, after.expires_seconds),
        on_timeout=on_timeout,
        escalate_to=_groups(before.escalate_to, after.escalate_to) if escalates else (),
    )


def plan_approval(steps: Iterable[tuple[StepDescription, Ruling]]) -> ApprovalRule | None:
    """The one approval of a plan: the strictest among the steps whose approval has the scope PLAN.

    The gravest step governs: where the steps' groups have nobody in common, the groups of the least reversible step
    approve, among equals those of the step that needs most people. A plan with an irreversible step is never approved
    by a timeout.
    """
    described = sorted(steps, key=_impact)
    found: ApprovalRule | None = None
    for _, ruling in described:
        if ruling.approval is not None and ruling.approval.scope is Scope.PLAN:
            found = strictest_approval(found, ruling.approval)
    irreversible = any(step.reversibility is Reversibility.IRREVERSIBLE for step, _ in described)
    if found is not None and irreversible and found.on_timeout is OnTimeout.APPROVE:
        return replace(found, on_timeout=OnTimeout.EXPIRE)
    return found


def _impact(step: tuple[StepDescription, Ruling]) -> tuple[int, int]:
    description, ruling = step
    needed = ruling.approval.needed if ruling.approval else 0
    return list(Reversibility).index(description.reversibility), needed


def _budgets(before: Policy, after: Policy) -> Policy:
    fields = vars(before)
    return Policy(
        **{
            name: (min if name in _SMALLER_IS_STRICTER else max)(value, getattr(after, name))
            for name, value in fields.items()
        }
    )


def _decisions(before: Decisions, after: Decisions) -> Decisions:
    return {reason: _answers(answers, after[reason]) for reason, answers in before.items()}


def _answers(
    before: Mapping[Decision, DecisionRule], after: Mapping[Decision, DecisionRule]
) -> Mapping[Decision, DecisionRule]:
    """What both allow; where that is nothing, what `after` allows: a case that nobody can answer helps nobody."""
    both = {decision: _people(rule, after[decision]) for decision, rule in before.items() if decision in after}
    return both or after


def _people(before: DecisionRule, after: DecisionRule) -> DecisionRule:
    return DecisionRule(max(before.needed, after.needed), _groups(before.groups, after.groups))


def _groups(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """The groups that are in both; an empty list is everybody."""
    if not before or not after:
        return before or after
    return tuple(group for group in after if group in before) or after


def _limits(before: Limits, after: Limits) -> Limits:
    return Limits(
        in_flight=_lower(before.in_flight, after.in_flight),
        in_flight_per_workflow=_lower(before.in_flight_per_workflow, after.in_flight_per_workflow),
        starts_per_minute=_lower(before.starts_per_minute, after.starts_per_minute),
        burst=_lower(before.burst, after.burst),
    )


def _lower[N: (int, float)](before: N | None, after: N | None) -> N | None:
    """The lower of two limits; None is none."""
    return before if after is None else after if before is None else min(before, after)


def _later[T: StrEnum](before: T, after: T) -> T:
    """The stricter of two values of a scale that is declared in rising strictness."""
    scale = list(type(before))
    return max(before, after, key=scale.index)
