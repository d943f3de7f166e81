"""Policies, whatever the rules and the arguments may be: totality, the order of overriding, and failing closed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals.policies import DriftAnswer, OnFailure, rule
from approvals.rules.policy_documents import read_policy
from approvals.rules.policy_errors import PolicyInvalid
from approvals.rules.strictness import strictest
from checkpoint.states import CaseReason
from tests.policies_driver import document, step

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcents"), inner, max_size=4),
    max_leaves=12,
)
_conditions = st.sampled_from(
    [
        "arguments.a > 1", "arguments.a == arguments.b", "arguments.a.exists(x, x.b)", "size(arguments.a) > 2",
        "arguments.a[0] == 1", "arguments.a in arguments.b", "has(arguments.a.b)", "arguments.a.matches('a')",
        "arguments.a / arguments.b > 0", "int(arguments.a) > 0", "true", "false", "arguments.a ? arguments.b : false",
    ]
)  # fmt: skip
_approvals = st.fixed_dictionaries(
    {},
    optional={
        "scope": st.sampled_from(["step", "plan"]),
        "needed": st.integers(1, 20),
        "groups": st.lists(st.sampled_from(["A", "B", "C"]), min_size=1, unique=True),
        "self_approval": st.booleans(),
        "wait_seconds": st.integers(0, 1000),
        "expires_seconds": st.integers(1, 1000),
        "on_timeout": st.sampled_from(["expire", "reject"]),
    },
).filter(bool)
_answers = st.dictionaries(
    st.sampled_from(["confirm", "retry", "abandon"]), st.fixed_dictionaries({"needed": st.integers(1, 3)}), min_size=1
)
_sets = st.fixed_dictionaries(
    {},
    optional={
        "approval": st.just("none") | _approvals,
        "decisions": st.dictionaries(st.sampled_from(["outcome_unknown", "retries_exhausted"]), _answers, min_size=1),
        "budgets": st.fixed_dictionaries({"max_attempts": st.integers(1, 9), "retry_base": st.integers(1, 9)}),
        "limits": st.fixed_dictionaries({"in_flight": st.integers(1, 9)}),
        "drift": st.fixed_dictionaries({"tool": st.sampled_from(list(map(str, DriftAnswer)))}),
        "batch": st.fixed_dictionaries({"on_failure": st.sampled_from(list(map(str, OnFailure)))}),
        "step_up": st.booleans(),
    },
).filter(bool)
_rules = st.lists(
    st.fixed_dictionaries(
        {"set": _sets, "when": st.fixed_dictionaries({}, optional={"if": _conditions, "tool": st.just("card.*")})}
    ),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(_rules, st.none() | _values)
def test_a_ruling_is_whole_whatever_the_rules_and_the_arguments(rules: list[dict[str, Any]], arguments: Any) -> None:
    ruling = rule(document(*rules), step(arguments))
    assert set(ruling.decisions) == set(CaseReason)
    assert all(ruling.decisions.values())
    assert all(people.needed >= 1 for answers in ruling.decisions.values() for people in answers.values())
    assert ruling.approval is None or (ruling.approval.needed >= 1 and ruling.approval.groups)
    assert ruling.budgets.max_attempts >= 1
    assert ruling.reasons


@settings(max_examples=100, deadline=None)
@given(_rules, _rules, _sets)
def test_what_the_last_rule_names_holds(before: list[dict[str, Any]], more: list[dict[str, Any]], last: Any) -> None:
    unconditional = [{"set": each["set"]} for each in [*before, *more]]
    ruling = rule(document(*unconditional, {"set": last}), step())
    if isinstance(last.get("approval"), dict):
        assert ruling.approval is not None
        named = {name: tuple(value) if isinstance(value, list) else value for name, value in last["approval"].items()}
        assert {name: getattr(ruling.approval, name) for name in named} == named
    elif "approval" in last:
        assert ruling.approval is None
    for area in ("budgets", "limits", "drift", "batch"):
        for name, value in last.get(area, {}).items():
            assert getattr(getattr(ruling, area), name) == value
    for reason, answers in last.get("decisions", {}).items():
        assert {name: people.needed for name, people in ruling.decisions[CaseReason(reason)].items()} == {
            name: people["needed"] for name, people in answers.items()
        }


@settings(max_examples=100, deadline=None)
@given(_rules, _rules)
def test_a_rule_without_an_answer_never_loosens(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    certain = [{"set": each["set"]} for each in first]
    doubtful = [{"set": each["set"], "when": {"if": "arguments.missing == 1"}} for each in second]
    without, tightened = rule(document(*certain), step({})), rule(document(*certain, *doubtful), step({}))
    assert strictest(without, tightened).approval == tightened.approval
    assert strictest(without, tightened).drift == tightened.drift
    assert strictest(without, tightened).batch == tightened.batch
    assert tightened.budgets.max_attempts <= without.budgets.max_attempts
    assert tightened.step_up >= without.step_up


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | _values.map(yaml.safe_dump))
def test_any_text_is_a_policy_or_has_faults(text: str) -> None:
    with suppress(PolicyInvalid):
        read_policy(text)
