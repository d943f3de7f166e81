"""Policies: which rules apply to a step, and what they make of it. Pure, total, and quick enough for every claim.

The rules are read from first to last, and a later one overrides an earlier one field by field. A rule whose condition
cannot be evaluated applies all the same, but can then only tighten: it fails closed, whether it was written to ask for
more or for less. docs/policies.md tells it to those who write policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from approvals.rules.conditions import Condition, ConditionFailed, Facts
from approvals.rules.strictness import plan_approval, strictest
from checkpoint.budgets import Policy
from checkpoint.contracts import Reversibility
from checkpoint.gates.rulings import (
    ApprovalRule,
    BatchRule,
    DecisionRule,
    Decisions,
    DriftAnswer,
    DriftRule,
    Limits,
    OnFailure,
    OnTimeout,
    Ruling,
    Scope,
    StepDescription,
    describe,
)

__all__ = [
    "ApprovalRule",
    "BatchRule",
    "Changes",
    "DecisionRule",
    "Decisions",
    "DriftAnswer",
    "DriftRule",
    "Limits",
    "OnFailure",
    "OnTimeout",
    "PolicyDocument",
    "PolicyRule",
    "Ruling",
    "Scope",
    "StepDescription",
    "When",
    "describe",
    "plan_approval",
    "rule",
]


@dataclass(frozen=True)
class When:
    """What a rule matches; an empty member matches everything.

    Attributes:
        tools, kinds, teams: patterns with * and ?; one of each must match.
        condition: must hold for the arguments.
    """

    tools: tuple[str, ...] = ()
    reversibility: tuple[Reversibility, ...] = ()
    kinds: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    condition: Condition | None = None

    def matches(self, tool: str, reversibility: Reversibility, kind: str, team: str) -> bool:
        """Whether all but the condition match."""
        return (
            _any_matches(self.tools, tool)
            and (not self.reversibility or reversibility in self.reversibility)
            and _any_matches(self.kinds, kind)
            and _any_matches(self.teams, team)
        )


def _any_matches(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Changes:
    """What a rule sets; what it does not name stays as the rules before it left it.

    Attributes:
        approval: fields of ApprovalRule.
        no_approval: takes an earlier rule's approval away.
        decisions: for each reason of a case, all answers that may be given.
        words: each change in words, for the reasons of a ruling.
    """

    approval: Mapping[str, Any] = field(default_factory=dict)
    no_approval: bool = False
    decisions: Decisions = field(default_factory=dict)
    budgets: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    drift: Mapping[str, Any] = field(default_factory=dict)
    batch: Mapping[str, Any] = field(default_factory=dict)
    step_up: bool | None = None
    words: tuple[str, ...] = ()

    def applied_to(self, ruling: Ruling) -> Ruling:
        """The ruling with these changes."""
        return Ruling(
            budgets=replace(ruling.budgets, **self.budgets),
            approval=self._approval(ruling.approval),
            decisions={**ruling.decisions, **self.decisions},
            limits=replace(ruling.limits, **self.limits),
            drift=replace(ruling.drift, **self.drift),
            batch=replace(ruling.batch, **self.batch),
            step_up=ruling.step_up if self.step_up is None else self.step_up,
        )

    def _approval(self, before: ApprovalRule | None) -> ApprovalRule | None:
        if self.no_approval:
            return None
        return replace(before or ApprovalRule(), **self.approval) if self.approval else before


@dataclass(frozen=True)
class PolicyRule:
    """One rule of a policy."""

    name: str
    when: When
    changes: Changes


@dataclass(frozen=True, eq=False)
class PolicyDocument:
    """A policy as it was read: `budgets` where no rule says otherwise, and the rules in their order.

    Documents are compared by identity, which makes them cheap keys of the caches below.
    """

    budgets: Policy = field(default_factory=Policy)
    rules: tuple[PolicyRule, ...] = ()


class _Verdict(Enum):
    """Whether a rule that matches applies."""

    YES = "applies"
    NO = "does not apply"
    UNKNOWN = "only tightens"


_Verdicts = tuple[tuple[int, _Verdict], ...]


def rule(document: PolicyDocument, description: StepDescription) -> Ruling:
    """What the policy says about the step, and why."""
    step = description
    candidates = _candidates(document, step.tool, step.reversibility, step.kind, step.team)
    if not candidates.conditional:
        return _ruling(document, candidates.verdicts)
    facts = Facts(step.arguments, step.tool, step.reversibility.value, step.kind, step.team)
    failures: dict[int, str] = {}
    verdicts = tuple(
        (index, _verdict(index, document.rules[index].when.condition, facts, failures))
        for index, _ in candidates.verdicts
    )
    ruling = _ruling(document, verdicts)
    if not failures:
        return ruling
    return replace(ruling, reasons=_reasons(document, verdicts, failures))


@dataclass(frozen=True)
class _Candidates:
    """The rules that match but for their conditions."""

    verdicts: _Verdicts
    conditional: bool


@lru_cache(maxsize=10_000)
def _candidates(document: PolicyDocument, tool: str, reversibility: Reversibility, kind: str, team: str) -> _Candidates:
    found = [index for index, each in enumerate(document.rules) if each.when.matches(tool, reversibility, kind, team)]
    conditional = any(document.rules[index].when.condition is not None for index in found)
    return _Candidates(tuple((index, _Verdict.YES) for index in found), conditional)


def _verdict(index: int, condition: Condition | None, facts: Facts, failures: dict[int, str]) -> _Verdict:
    if condition is None:
        return _Verdict.YES
    try:
        return _Verdict.YES if condition.holds(facts) else _Verdict.NO
    except ConditionFailed as failure:
        failures[index] = str(failure)
        return _Verdict.UNKNOWN


@lru_cache(maxsize=10_000)
def _ruling(document: PolicyDocument, verdicts: _Verdicts) -> Ruling:
    ruling = Ruling(budgets=document.budgets)
    for index, verdict in verdicts:
        if verdict is _Verdict.NO:
            continue
        changed = document.rules[index].changes.applied_to(ruling)
        ruling = changed if verdict is _Verdict.YES else strictest(ruling, changed)
    return replace(ruling, reasons=_reasons(document, verdicts, {}))


def _reasons(document: PolicyDocument, verdicts: _Verdicts, failures: Mapping[int, str]) -> tuple[str, ...]:
    said = [_reason(document.rules[index], verdict, failures.get(index, "")) for index, verdict in verdicts]
    return tuple(said) or ("no rule matches: the defaults hold",)


def _reason(applied: PolicyRule, verdict: _Verdict, failure: str) -> str:
    sets = f"sets {', '.join(applied.changes.words)}"
    if verdict is _Verdict.NO:
        return f"“{applied.name}” does not apply: its condition does not hold"
    if verdict is _Verdict.UNKNOWN:
        return f"“{applied.name}” {sets}, as far as that is stricter, since its condition has no answer: {failure}"
    return f"“{applied.name}” {sets}"
