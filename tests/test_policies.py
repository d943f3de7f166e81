"""Policies as plain data: what a rule matches, what it sets, how rules override, and what no condition may do."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from approvals.policies import (
    ApprovalRule,
    DecisionRule,
    DriftAnswer,
    OnTimeout,
    Ruling,
    Scope,
    describe,
    plan_approval,
    rule,
)
from approvals.rules.condition_shapes import FUNCTIONS
from approvals.rules.conditions import compile_condition
from approvals.rules.policy_documents import in_todays_form, read_policy, stored_policy
from approvals.rules.policy_errors import PolicyInvalid
from approvals.rules.policy_schema import SCHEMA
from approvals.rules.policy_words import approval_in_words, differences
from checkpoint.budgets import Policy
from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import Reversibility
from checkpoint.states import CASE_RULES, CaseReason, Decision
from tests.policies_driver import CAREFUL, document, faults, step

APPROVAL = {"approval": {"needed": 1}}


# What a rule matches


@pytest.mark.parametrize(
    ("when", "matches"),
    [
        ({}, True),
        ({"tool": "card.*"}, True),
        ({"tool": "mail.*"}, False),
        ({"tool": ["mail.*", "card.charge"]}, True),
        ({"reversibility": "irreversible"}, True),
        ({"reversibility": ["none_needed", "compensable"]}, False),
        ({"kind": "refund"}, True),
        ({"kind": "ref???"}, True),
        ({"kind": "refunds"}, False),
        ({"team": "billing"}, True),
        ({"team": ["legal", "ops"]}, False),
        ({"tool": "card.*", "team": "legal"}, False),
        ({"if": "arguments.cents > 100"}, True),
        ({"if": "arguments.cents > 500"}, False),
        (
            {"if": 'tool == "card.charge" && kind == "refund" && team == "billing" && reversibility == "irreversible"'},
            True,
        ),
        ({"tool": "mail.*", "if": "arguments.cents > 100"}, False),
    ],
)
def test_a_rule_matches_when_all_its_members_do(when: dict[str, Any], matches: bool) -> None:
    ruling = rule(document({"when": when, "set": APPROVAL}), step({"cents": 200}))
    assert (ruling.approval is not None) == matches


def test_a_step_whose_variant_is_not_known_counts_as_the_gravest_of_its_tool() -> None:
    variants = [{"name": name, "contract": {"reversibility": name}} for name in ("irreversible", "compensable")]
    known: dict[str, Any] = {"tool": "mail.send", "variants": variants, "kind": "task", "team": "ops"}
    assert describe(**known, variant="", arguments=None).reversibility is Reversibility.IRREVERSIBLE
    assert describe(**known, variant="compensable", arguments="{}").reversibility is Reversibility.COMPENSABLE


# What it sets


def test_without_rules_everything_is_as_it_was_before_policies_had_rules() -> None:
    ruling = rule(document(), step())
    assert ruling == Ruling()
    assert (ruling.budgets, ruling.approval, ruling.step_up, ruling.limits.in_flight) == (Policy(), None, False, None)
    assert ruling.decisions == {
        reason: dict.fromkeys(case.decisions, DecisionRule()) for reason, case in CASE_RULES.items()
    }
    assert ruling.reasons == ("no rule matches: the defaults hold",)


def test_a_rule_sets_every_field() -> None:
    sets = {
        "approval": {
            "scope": "plan", "needed": 2, "groups": ["Approver", "Admin"], "self_approval": True,
            "wait_seconds": 60, "expires_seconds": 3600, "on_timeout": "escalate", "escalate_to": ["Admin"],
        },
        "decisions": {"outcome_unknown": {"confirm": {"needed": 2, "groups": ["Approver"]}, "abandon": {}}},
        "budgets": {"max_attempts": 1, "retry_base": 0.5},
        "limits": {"in_flight": 5},
        "drift": {"policy": "review", "prompt": "continue", "tool": "reapprove"},
        "step_up": True,
    }  # fmt: skip
    ruling = rule(document({"set": sets}, verification_deadline=90), step())
    assert ruling.approval == ApprovalRule(
        Scope.PLAN, 2, ("Approver", "Admin"), True, 60, 3600, OnTimeout.ESCALATE, ("Admin",)
    )
    assert ruling.decisions[CaseReason.OUTCOME_UNKNOWN] == {
        Decision.CONFIRM: DecisionRule(2, ("Approver",)),
        Decision.ABANDON: DecisionRule(1),
    }
    assert set(ruling.decisions) == set(CaseReason)
    assert ruling.budgets == Policy(max_attempts=1, retry_base=0.5, verification_deadline=90)
    assert ruling.limits.in_flight == 5
    assert (ruling.drift.policy, ruling.drift.prompt) == (DriftAnswer.REVIEW, DriftAnswer.CONTINUE)
    assert ruling.step_up is True


def test_no_policy_lets_one_person_count_twice_and_one_from_before_is_still_read() -> None:
    asked = {"rules": [{"name": "two", "set": {"approval": {"needed": 2, "distinct": False}}}]}
    assert any("distinct" in fault for fault in faults(asked))
    assert rule(stored_policy(asked), step()).approval == ApprovalRule(needed=2)
    assert rule(stored_policy({"rules": [{"name": "a", "set": {"approval": {"distinct": True}}}]}), step()).approval
    assert ApprovalRule.from_json({**ApprovalRule(needed=2).to_json(), "distinct": False}) == ApprovalRule(needed=2)


def test_a_later_rule_overrides_field_by_field() -> None:
    first = {"set": {"approval": {"needed": 2, "groups": ["Admin"]}, "budgets": {"max_attempts": 1, "retry_cap": 5}}}
    second = {"set": {"approval": {"expires_seconds": 60}, "budgets": {"max_attempts": 7}}}
    ruling = rule(document(first, second), step())
    assert ruling.approval == ApprovalRule(needed=2, groups=("Admin",), expires_seconds=60)
    assert ruling.budgets == Policy(max_attempts=7, retry_cap=5)


def test_a_reason_of_a_case_is_one_field_so_its_answers_are_replaced_whole() -> None:
    told: dict[str, Any] = {"outcome_unknown": {"confirm": {}, "retry": {}}, "plan_invalid": {"abandon": {}}}
    first, second = (
        {"set": {"decisions": told}},
        {"set": {"decisions": {"outcome_unknown": {"abandon": {"needed": 2}}}}},
    )
    ruling = rule(document(first, second), step())
    assert ruling.decisions[CaseReason.OUTCOME_UNKNOWN] == {Decision.ABANDON: DecisionRule(2)}
    assert ruling.decisions[CaseReason.PLAN_INVALID] == {Decision.ABANDON: DecisionRule(1)}


def test_none_takes_an_approval_away_and_a_later_rule_begins_from_the_defaults() -> None:
    taken = ({"set": {"approval": {"needed": 3}}}, {"set": {"approval": "none"}})
    assert rule(document(*taken), step()).approval is None
    assert rule(document(*taken, {"set": {"approval": {"groups": ["Admin"]}}}), step()).approval == ApprovalRule(
        groups=("Admin",)
    )


def test_the_reasons_say_which_rule_set_what() -> None:
    ruling = rule(
        document(
            {"name": "all", "set": {"approval": {"needed": 2, "groups": ["Approver", "Admin"]}}},
            {"name": "mails", "when": {"tool": "mail.*"}, "set": {"step_up": True}},
            {"name": "large", "when": {"if": "arguments.cents > 500"}, "set": {"step_up": True}},
            {"name": "small", "when": {"if": "arguments.cents <= 500"}, "set": {"limits": {"in_flight": 3}}},
        ),
        step({"cents": 200}),
    )
    assert ruling.reasons == (
        "“all” sets approval (needed 2, groups Approver or Admin)",
        "“large” does not apply: its condition does not hold",
        "“small” sets limits (in_flight 3)",
    )


# Conditions that have no answer

UNANSWERED = [
    (None, "the arguments are not there yet"),
    ({}, 'there is no member "cents"'),
    ({"cents": "many"}, "no operation fits"),
    ({"cents": 2**70}, "out of range"),
    ({"cents": None}, "no operation fits"),
    ([1, 2], ""),
]


@pytest.mark.parametrize(("arguments", "why"), UNANSWERED)
def test_a_condition_without_an_answer_lets_its_rule_apply_and_says_so(arguments: Any, why: str) -> None:
    ruling = rule(
        document({"name": "large", "when": {"if": "arguments.cents > 500"}, "set": APPROVAL}), step(arguments)
    )
    assert ruling.approval == ApprovalRule()
    assert ruling.reasons[0].startswith("“large” sets approval (needed 1), as far as that is stricter, since")
    assert why in ruling.reasons[0]


@pytest.mark.parametrize(("arguments", "why"), UNANSWERED)
def test_a_rule_that_loosens_does_nothing_where_its_condition_has_no_answer(arguments: Any, why: str) -> None:
    strict = {
        "approval": {"needed": 2, "groups": ["Admin"], "expires_seconds": 60},
        "decisions": {"outcome_unknown": {"abandon": {"needed": 2}}},
        "budgets": {"max_attempts": 1, "retry_base": 10},
        "limits": {"in_flight": 1},
        "drift": {"policy": "review", "prompt": "review", "tool": "review"},
        "step_up": True,
    }
    loose = {
        "approval": "none",
        "decisions": {"outcome_unknown": {"abandon": {}, "retry": {}}},
        "budgets": {"max_attempts": 9, "retry_base": 1},
        "limits": {"in_flight": 9},
        "drift": {"policy": "continue", "prompt": "continue", "tool": "continue"},
        "step_up": False,
    }
    guarded = document({"set": strict}, {"when": {"if": "arguments.cents < 10"}, "set": loose})
    assert rule(guarded, step(arguments)) == rule(document({"set": strict}), step(arguments))
    assert rule(guarded, step({"cents": 5})).approval is None


def test_an_answer_that_is_neither_true_nor_false_is_none() -> None:
    ruling = rule(document({"when": {"if": "arguments.cents"}, "set": APPROVAL}), step({"cents": 5}))
    assert ruling.approval is not None
    assert "neither true nor false" in ruling.reasons[0]


# The strictest of a plan


def test_of_a_plan_the_strictest_approval_governs() -> None:
    mail = step(tool="mail.send", reversibility=Reversibility.COMPENSABLE), approving(needed=3, groups=["A", "B"])
    charge = step(), approving(needed=1, groups=["B"], expires_seconds=60, self_approval=False)
    note = step(tool="note", reversibility=Reversibility.NONE_NEEDED), rule(document(), step())
    found = plan_approval([charge, mail, note])
    assert found == ApprovalRule(Scope.PLAN, needed=3, groups=("B",), expires_seconds=60)
    assert plan_approval([mail, note, charge]) == found


def approving(**approval: Any) -> Ruling:
    """A ruling that asks for one approval of the whole plan."""
    return rule(document({"set": {"approval": {"scope": "plan", **approval}}}), step())


def test_where_groups_have_nobody_in_common_the_gravest_step_governs() -> None:
    mail = step(tool="mail.send", reversibility=Reversibility.COMPENSABLE), approving(needed=5, groups=["Mailers"])
    charge = step(), approving(groups=["Treasurers"])
    found = plan_approval([charge, mail])
    assert found is not None
    assert (found.groups, found.needed) == (("Treasurers",), 5)


def test_steps_that_are_approved_on_their_own_do_not_count_for_the_plan() -> None:
    assert plan_approval([(step(), rule(document({"set": APPROVAL}), step()))]) is None
    assert plan_approval([]) is None


def test_no_timeout_approves_a_plan_with_an_irreversible_step() -> None:
    undoable = step(tool="note", reversibility=Reversibility.COMPENSABLE)
    waved_through = {
        "when": {"reversibility": "compensable"},
        "set": {"approval": {"scope": "plan", "on_timeout": "approve"}},
    }
    policy = document(waved_through)
    alone = plan_approval([(undoable, rule(policy, undoable))])
    beside = plan_approval([(undoable, rule(policy, undoable)), (step(), rule(policy, step()))])
    assert (alone and alone.on_timeout, beside and beside.on_timeout) == (OnTimeout.APPROVE, OnTimeout.EXPIRE)


# Faults


def test_every_fault_is_reported_at_its_place() -> None:
    found = faults(
        {
            "defaults": {"max_attempts": 0, "maxattempts": 1},
            "rules": [
                {"name": "a", "set": {"approval": None}},
                {"name": "a", "when": {"if": "foo(1)", "tool": []}, "set": {}},
                {
                    "when": {"reversibility": "x"},
                    "set": {"decisions": {"outcome_unknown": {"continue": {}}}},
                },
            ],
        }
    )
    assert found == [
        "/defaults/max_attempts: must be at least 1, not the number 0",
        '/defaults/maxattempts: unknown member; did you mean "max_attempts"?',
        '/rules/0/set/approval: must be an object, or "none", not null',
        "/rules/1/name: another rule has this name; each needs its own",
        "/rules/1/set: must have at least 1 members; it has 0",
        "/rules/1/when/if: line 1, column 4: undeclared reference to 'foo'",
        "/rules/1/when/tool: must have at least 1 items; it has 0",
        "/rules/2/name: is missing",
        "/rules/2/set/decisions/outcome_unknown/continue: unknown member; known here: abandon, confirm, retry",
        '/rules/2/when/reversibility: must be one of "none_needed", "compensable", "irreversible", not the string "x"',
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", '/: the policy is empty; write "rules: []" for one without rules'),
        ("- 1", "/: must be an object, not an array"),
        ("rules: [}", "/: not YAML: did not find expected node content at line 1, column 9"),
        ("rules: 2026-01-01", '/rules: a date must be a quoted string: "2026-01-01"'),
        ("rules: []\nrules: []", '/: has two members named "rules"; keep one'),
        ("a: b\0", "/: NUL characters cannot be stored; remove them"),
        ("#" * 300_000, "/: the policy has 300000 characters; the limit is 262144"),
    ],
)
def test_what_is_no_policy_at_all_says_so(text: str, fault: str) -> None:
    assert faults(text)[0] == fault


@pytest.mark.parametrize("narrowed", [None, "irreversible", ["compensable", "irreversible"]])
def test_a_timeout_never_approves_what_cannot_be_undone(narrowed: Any) -> None:
    when = {} if narrowed is None else {"reversibility": narrowed}
    waved_through = {"name": "a", "when": when, "set": {"approval": {"on_timeout": "approve"}}}
    (found,) = faults({"rules": [waved_through]})
    assert found.startswith("/rules/0/set/approval/on_timeout: approve is only allowed for what can be undone")


@pytest.mark.parametrize("approval", [{"on_timeout": "escalate"}, {"escalate_to": ["Admin"]}])
def test_escalating_names_whom_to_ask(approval: dict[str, Any]) -> None:
    (found,) = faults({"rules": [{"name": "a", "set": {"approval": approval}}]})
    assert found.startswith("/rules/0/set/approval/escalate_to: goes with `on_timeout: escalate`")


def test_numbers_that_are_whole_are_stored_as_such() -> None:
    read, stored = read_policy("defaults: {max_attempts: 3.0, retry_base: 1.0}")
    assert (read.budgets.max_attempts, json.dumps(stored["defaults"])) == (3, '{"max_attempts": 3, "retry_base": 1}')


def test_what_was_stored_before_policies_had_rules_is_read_as_its_defaults() -> None:
    assert stored_policy({"max_attempts": 5}).budgets == Policy(max_attempts=5)
    assert stored_policy({}).budgets == Policy()
    assert in_todays_form({"max_attempts": 5}) == {"defaults": {"max_attempts": 5}, "rules": []}
    with pytest.raises(PolicyInvalid):
        stored_policy({"max_attempts": 5, "rules": []})


def test_a_stored_policy_rules_as_the_text_that_it_was_read_from() -> None:
    read, stored = read_policy(CAREFUL)
    for described in (step({"json": {"amount": 200_000}}), step(tool="http.request"), step(tool="note")):
        assert rule(stored_policy(json.loads(json.dumps(stored))), described) == rule(read, described)


def test_a_rule_reads_the_same_however_its_members_are_ordered() -> None:
    """PostgreSQL keeps them in an order of its own."""
    _, stored = read_policy(CAREFUL)
    turned = {"rules": [reordered(each) for each in stored["rules"]], "defaults": reordered(stored["defaults"])}
    assert [each.changes.words for each in stored_policy(turned).rules] == [
        each.changes.words for each in stored_policy(stored).rules
    ]


def reordered(value: Any) -> Any:
    """The value with the members of all its objects in another order."""
    return {name: reordered(value[name]) for name in reversed(value)} if isinstance(value, dict) else value


def test_the_careful_example_does_what_it_says() -> None:
    careful, _ = read_policy(CAREFUL)
    one = rule(careful, step({"json": {"amount": 5}}, tool="http.request"))
    two = rule(careful, step({"json": {"amount": 200_000}}, tool="http.request"))
    assert one.approval == ApprovalRule(needed=1, groups=("Approver",), expires_seconds=86_400)
    assert two.approval == ApprovalRule(needed=2, groups=("Approver",), expires_seconds=86_400)
    assert (one.step_up, two.step_up) == (False, True)
    assert one.decisions[CaseReason.OUTCOME_UNKNOWN][Decision.RETRY] == DecisionRule(2, ("Approver",))
    assert rule(careful, step(reversibility=Reversibility.COMPENSABLE)).approval is None


# Cost and words


def test_a_ruling_costs_next_to_nothing_at_a_claim() -> None:
    policy = document(*({"when": {"tool": f"tool{number}.*"}, "set": {"step_up": True}} for number in range(200)))
    described = step()
    rule(policy, described)
    started = time.monotonic()
    for _ in range(1000):
        rule(policy, described)
    assert (time.monotonic() - started) / 1000 < 50e-6


def test_differences_between_two_rulings_are_sentences() -> None:
    strict = rule(
        document(
            {"set": {"approval": {"needed": 2, "on_timeout": "reject"}, "limits": {"in_flight": 2}, "step_up": True}}
        ),
        step(),
    )
    assert differences(Ruling(), strict) == (
        "approval: no approval → 2 of Approver for the step, within 1 day; without an answer it is rejected",
        "limits.in_flight: none → 2",
        "step_up: false → true",
    )
    assert differences(strict, strict) == ()


def test_an_approval_in_words() -> None:
    said = approval_in_words(ApprovalRule(Scope.PLAN, 2, ("A", "B"), True, 90, 7200, OnTimeout.ESCALATE, ("Admin",)))
    assert said == (
        "2 of A or B for the whole plan, within 2 hours, "
        "sent no sooner than 90 seconds after the last, the submitter may be one of them; "
        "without an answer Admin is asked"
    )


# The documentation

DOCUMENTATION = (BASE_DIR / "docs" / "policies.md").read_text(encoding="utf-8")


def fields_of(schema: dict[str, Any]) -> set[str]:
    """Every member that a policy can have; the reasons and answers of `decisions` stand in another document."""
    named = schema.get("properties", {})
    inner = [member for name, member in named.items() if name != "decisions"]
    inner += [*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])]
    return set(named).union(*map(fields_of, inner))


def test_the_documentation_names_every_field() -> None:
    structure = {"name", "when", "set", "rules", "decisions", "budgets", "limits", "drift", "batch"}
    for name in fields_of(SCHEMA) - structure:
        assert f"`{name}`" in DOCUMENTATION or f".{name}`" in DOCUMENTATION


def test_the_documented_example_is_the_one_that_is_shipped() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", DOCUMENTATION, re.DOTALL)
    assert read_policy(shown)[1] == read_policy(CAREFUL)[1]


def test_the_documented_conditions_compile() -> None:
    (block,) = re.findall(r"```text\n(.*?)```", DOCUMENTATION, re.DOTALL)
    for line in block.splitlines():
        compile_condition(line)
    for name in FUNCTIONS:
        assert f"`{name}`" in DOCUMENTATION
