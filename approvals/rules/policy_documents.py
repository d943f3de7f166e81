"""Reads a policy from YAML, or from the form in which a policy version stores it, with every fault at its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import referencing
from jsonschema import Draft202012Validator

from approvals.policies import Changes, PolicyDocument, PolicyRule, When
from approvals.rules.conditions import compile_condition
from approvals.rules.policy_errors import PolicyInvalid
from approvals.rules.policy_schema import NO_APPROVAL, SCHEMA
from approvals.rules.policy_words import words_of
from checkpoint.budgets import Policy
from checkpoint.contracts import Reversibility
from checkpoint.errors import Fault
from checkpoint.gates.rulings import DecisionRule, Decisions, DriftAnswer, OnFailure, OnTimeout, Scope
from checkpoint.planning.schema_faults import faults_from
from checkpoint.planning.yaml_reader import read_yaml
from checkpoint.states import CaseReason, Decision

LARGEST_POLICY = 256 * 1024  # characters

_APPROVE = (
    "approve is only allowed for what can be undone: let `when` name a reversibility of none_needed or compensable, "
    "or choose expire, reject or escalate"
)
_ESCALATE = "goes with `on_timeout: escalate`, and that with it: it names the groups that are asked next"
_VALIDATOR = Draft202012Validator(SCHEMA, registry=referencing.Registry())
_BUDGETS = [each.name for each in fields(Policy)]


def read_policy(text: str) -> tuple[PolicyDocument, dict[str, Any]]:
    """The policy in a YAML text, and the JSON values in which it is stored.

    Raises:
        PolicyInvalid: every fault, ordered by place.
    """
    if len(text) > LARGEST_POLICY:
        raise PolicyInvalid([Fault("", f"the policy has {len(text)} characters; the limit is {LARGEST_POLICY}")])
    if "\0" in text:
        raise PolicyInvalid([Fault("", "NUL characters cannot be stored; remove them")])
    value, reading = read_yaml(text, LARGEST_POLICY)
    value = _with_whole_numbers(value)
    if value is None:
        raise PolicyInvalid(reading or [Fault("", 'the policy is empty; write "rules: []" for one without rules')])
    unreadable = {fault.path for fault in reading}
    faults = [*reading, *(fault for fault in _faults(value) if fault.path not in unreadable)]
    if faults:
        raise PolicyInvalid(sorted(faults, key=lambda fault: _in_order(fault.path)))
    return _document(value), value


def stored_policy(rules: dict[str, Any]) -> PolicyDocument:
    """The policy that a policy version stores; also one from before policies had rules.

    Raises:
        PolicyInvalid: what is stored cannot be read.
    """
    value = in_todays_form(rules)
    if faults := _faults(value):
        raise PolicyInvalid(faults)
    return _document(value)


def in_todays_form(rules: dict[str, Any]) -> dict[str, Any]:
    """The stored values. Before policies had rules, a version held nothing but the fields of `budgets.Policy`."""
    if not rules.keys() <= set(_BUDGETS):
        listed = rules.get("rules")
        return {**rules, "rules": list(map(_without_distinct, listed))} if isinstance(listed, list) else rules
    return {"defaults": {name: rules[name] for name in _BUDGETS if name in rules}, "rules": []}


def _without_distinct(each: Any) -> Any:
    """A rule of a time when policies could say that one person may count twice. Nobody ever did; nobody does."""
    approval = _get(each, "set", "approval")
    if not isinstance(approval, dict) or "distinct" not in approval:
        return each
    kept = {name: value for name, value in approval.items() if name != "distinct"}
    return {**each, "set": {**each["set"], "approval": kept or {"self_approval": False}}}


def _with_whole_numbers(value: Any) -> Any:
    """3.0 as 3, which JSON Schema holds to be the same, while a column of integers does not."""
    if isinstance(value, dict):
        return {name: _with_whole_numbers(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _in_order(path: str) -> list[tuple[int, str]]:
    """Orders /rules/2 before /rules/10."""
    return [(int(part), "") if part.isdecimal() and len(part) < 10 else (-1, part) for part in path.split("/")]


def _faults(value: Any) -> list[Fault]:
    return [*faults_from(_VALIDATOR.iter_errors(value)), *_faults_beyond_the_schema(value)]


def _faults_beyond_the_schema(value: Any) -> Iterator[Fault]:
    """What no schema can say, about whatever has the right shape."""
    names: set[str] = set()
    for index, each in enumerate(_list(_get(value, "rules"))):
        place, name = f"/rules/{index}", _get(each, "name")
        if isinstance(name, str) and name in names:
            yield Fault(f"{place}/name", "another rule has this name; each needs its own")
        names |= {name} if isinstance(name, str) else set()
        yield from _condition_faults(_get(each, "when", "if"), f"{place}/when/if")
        yield from _timeout_faults(each, f"{place}/set/approval")


def _condition_faults(text: Any, place: str) -> Iterator[Fault]:
    try:
        if isinstance(text, str):
            compile_condition(text)
    except ValueError as error:
        yield Fault(place, str(error))


def _timeout_faults(each: Any, place: str) -> Iterator[Fault]:
    on_timeout, narrowed = _get(each, "set", "approval", "on_timeout"), _list(_get(each, "when", "reversibility"))
    if on_timeout == OnTimeout.APPROVE and (not narrowed or Reversibility.IRREVERSIBLE in narrowed):
        yield Fault(f"{place}/on_timeout", _APPROVE)
    if (on_timeout == OnTimeout.ESCALATE) != (_get(each, "set", "approval", "escalate_to") is not None):
        yield Fault(f"{place}/escalate_to", _ESCALATE)


def _get(value: Any, *names: str) -> Any:
    """The member of a member, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _list(value: Any) -> list[Any]:
    """What is one or several, as several."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _document(value: dict[str, Any]) -> PolicyDocument:
    rules = tuple(_rule(each) for each in value.get("rules", []))
    return PolicyDocument(replace(Policy(), **value.get("defaults", {})), rules)


def _rule(value: dict[str, Any]) -> PolicyRule:
    return PolicyRule(value["name"], _when(value.get("when", {})), _changes(value["set"]))


def _when(value: dict[str, Any]) -> When:
    return When(
        tools=tuple(_list(value.get("tool"))),
        reversibility=tuple(map(Reversibility, _list(value.get("reversibility")))),
        kinds=tuple(_list(value.get("kind"))),
        teams=tuple(_list(value.get("team"))),
        condition=compile_condition(value["if"]) if "if" in value else None,
    )


def _changes(value: dict[str, Any]) -> Changes:
    no_approval = value.get("approval") == NO_APPROVAL
    changes = Changes(
        approval={} if no_approval else _typed(value.get("approval", {}), scope=Scope, on_timeout=OnTimeout),
        no_approval=no_approval,
        decisions=_decisions(value.get("decisions", {})),
        budgets=value.get("budgets", {}),
        limits=value.get("limits", {}),
        drift=_typed(value.get("drift", {}), policy=DriftAnswer, prompt=DriftAnswer, tool=DriftAnswer),
        batch=_typed(value.get("batch", {}), on_failure=OnFailure),
        step_up=value.get("step_up"),
    )
    return replace(changes, words=words_of(changes))


def _decisions(value: dict[str, Any]) -> Decisions:
    return {
        CaseReason(reason): {Decision(name): DecisionRule(**_typed(people)) for name, people in answers.items()}
        for reason, answers in value.items()
    }


def _typed(value: Mapping[str, Any], **kinds: type) -> dict[str, Any]:
    """JSON values as the dataclasses want them: arrays as tuples, choices as members of their enumeration."""
    return {
        name: tuple(member) if isinstance(member, list) else kinds.get(name, lambda same: same)(member)
        for name, member in value.items()
    }
