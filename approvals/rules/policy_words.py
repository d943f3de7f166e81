"""Policies in words, for the people who read why. Plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from approvals.policies import Changes
from checkpoint.budgets import Policy
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
)
from checkpoint.states import CaseReason, Decision

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def words_of(changes: Changes) -> tuple[str, ...]:
    """What a rule sets, area by area: "approval (needed 2, groups Approver)", "step_up true".

    The order is that of the fields, not that of the text: PostgreSQL keeps the members of an object in an order of its
    own, and a rule must read the same from the text and from the database.
    """
    areas = [
        ("approval", _settings(ApprovalRule, changes.approval)),
        ("approval none", "" if changes.no_approval else None),
        *(
            (f"decisions.{reason}", _answers(changes.decisions[reason]))
            for reason in CaseReason
            if reason in changes.decisions
        ),
        ("budgets", _settings(Policy, changes.budgets)),
        ("limits", _settings(Limits, changes.limits)),
        ("drift", _settings(DriftRule, changes.drift)),
        ("batch", _settings(BatchRule, changes.batch)),
        (f"step_up {_scalar(changes.step_up)}", "" if changes.step_up is not None else None),
    ]
    return tuple(f"{area} ({words})" if words else area for area, words in areas if words is not None)


def _settings(kind: type[Any], given: Mapping[str, Any]) -> str | None:
    """The given fields in the order in which the dataclass declares them; None where there are none."""
    found = [f"{each.name} {_scalar(given[each.name])}" for each in fields(kind) if each.name in given]
    return ", ".join(found) or None


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return " or ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def approval_in_words(rule: ApprovalRule | None) -> str:
    """ "2 of Approver, within 1 day, never the submitter; then it expires" """
    if rule is None:
        return "no approval"
    parts = [f"{_people(rule)} {'for the whole plan' if rule.scope is Scope.PLAN else 'for the step'}"]
    parts += [f"within {duration(rule.expires_seconds)}"]
    parts += [f"sent no sooner than {duration(rule.wait_seconds)} after the last"] if rule.wait_seconds else []
    parts += ["the submitter may be one of them"] if rule.self_approval else []
    return f"{', '.join(parts)}; without an answer {_timeout(rule)}"


def _people(rule: ApprovalRule) -> str:
    return f"{rule.needed} of {' or '.join(rule.groups)}"


def _timeout(rule: ApprovalRule) -> str:
    return {
        OnTimeout.APPROVE: "it counts as approved",
        OnTimeout.ESCALATE: f"{' or '.join(rule.escalate_to)} is asked",
        OnTimeout.EXPIRE: "it expires",
        OnTimeout.REJECT: "it is rejected",
    }[rule.on_timeout]


def duration(seconds: float) -> str:
    """Seconds in the largest unit in which they are whole: "2 hours"."""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds % size == 0), (1, "second"))
    amount = seconds / size
    return f"{amount:g} {unit}{'' if amount == 1 else 's'}"


def differences(before: Ruling, after: Ruling) -> tuple[str, ...]:
    """What the second ruling changes, a sentence each; empty where the two are equal."""
    return tuple(_differences(before, after))


def _differences(before: Ruling, after: Ruling) -> Iterator[str]:
    if before.approval != after.approval:
        yield f"approval: {approval_in_words(before.approval)} → {approval_in_words(after.approval)}"
    for area in ("budgets", "limits", "drift", "batch"):
        yield from _changed_fields(area, getattr(before, area), getattr(after, area))
    yield from _changed_decisions(before.decisions, after.decisions)
    if before.step_up != after.step_up:
        yield f"step_up: {_scalar(before.step_up)} → {_scalar(after.step_up)}"


def _changed_fields(area: str, before: Any, after: Any) -> Iterator[str]:
    for each in fields(before):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if old != new:
            yield f"{area}.{each.name}: {_limit(old)} → {_limit(new)}"


def _limit(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _changed_decisions(before: Decisions, after: Decisions) -> Iterator[str]:
    for reason, answers in before.items():
        if answers != after[reason]:
            yield f"decisions.{reason}: {_answers(answers)} → {_answers(after[reason])}"


def _answers(answers: Mapping[Decision, DecisionRule]) -> str:
    return ", ".join(f"{decision} by {_how_many(answers[decision])}" for decision in Decision if decision in answers)


def _how_many(rule: DecisionRule) -> str:
    return f"{rule.needed}" + (f" of {' or '.join(rule.groups)}" if rule.groups else "")
