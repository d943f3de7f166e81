"""What may be submitted, and how everything else is refused: all faults at once, each with its place."""

from __future__ import annotations

import json
import uuid
from itertools import pairwise
from typing import Any

import pytest

from checkpoint.errors import SubmissionInvalid
from checkpoint.planning.documents import LARGEST_DOCUMENT, Format, format_of, read_document
from checkpoint.planning.plan_steps import MOST_STEPS, PublishedTool
from checkpoint.planning.plans import LARGEST_CONSTRAINTS, LARGEST_GOAL, LARGEST_INPUT, Plan
from tests.submissions import INVOICE, MAIL, document, invoice, mail, plan_of, read_plan

TOOLS = {
    declaration.name: PublishedTool(
        declaration.name,
        uuid.uuid4(),
        declaration.schema,
        [{"name": variant.name, "when": variant.when} for variant in declaration.variants],
    )
    for declaration in (INVOICE, MAIL)
}


def plan(*steps: dict[str, Any], **members: Any) -> Plan:
    """The plan in a document of these parts."""
    return plan_of(document(*steps, **members), TOOLS)


def faults(*steps: dict[str, Any], **members: Any) -> dict[str, str]:
    """What is wrong with a document of these parts, by place."""
    return faults_of(document(*steps, **members))


def faults_of(value: Any) -> dict[str, str]:
    """What is wrong with a document, by place."""
    with pytest.raises(SubmissionInvalid) as refusal:
        plan_of(value, TOOLS)
    return {fault.path: fault.message for fault in refusal.value.faults}


def faults_in(text: str | bytes, format: Format) -> dict[str, str]:
    """What is wrong with a file, by place."""
    with pytest.raises(SubmissionInvalid) as refusal:
        read_plan(text, format, TOOLS)
    return {fault.path: fault.message for fault in refusal.value.faults}


def test_a_plan_has_its_defaults() -> None:
    read = plan()
    assert (read.kind, read.constraints, read.input, read.prompt_version, read.sealed) == ("task", (), "{}", "", True)
    [step] = read.steps
    assert (step.position, step.variant, step.arguments) == (
        1,
        "keyed",
        '{"cents":12000,"customer":"acme","urgent":false}',
    )


def test_positions_go_on_by_one_unless_they_are_given() -> None:
    steps = [invoice("a"), invoice("b", position=2), invoice("c", position=2), invoice("d"), invoice("e", position=9)]
    assert [step.position for step in plan(*steps).steps] == [1, 2, 2, 3, 9]


def test_the_variant_follows_from_the_arguments() -> None:
    steps = plan(mail("plain"), mail("keyed", arguments={"to": "a", "key": "k"})).steps
    assert [step.variant for step in steps] == ["plain", "keyed"]


def test_arguments_that_only_need_the_input_are_complete_at_once() -> None:
    read = plan(mail(to={"$input": "/address"}), input={"address": "acme@example.com"})
    assert read.steps[0].arguments == '{"text":"","to":"acme@example.com"}'
    assert read.steps[0].template == '{"to":{"$input":"/address"}}'


def test_arguments_that_need_a_result_are_completed_later() -> None:
    [_, step] = plan(invoice(), mail(to={"$result": "invoice#/facts/to"}, position=2)).steps
    assert (step.arguments, step.variant) == (None, "")


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        ({"goal": None}, "/goal", "must be a string, not null"),
        ({"goal": " "}, "/goal", "must not be empty"),
        ({"goal": "x" * LARGEST_GOAL}, "/goal", f"has {LARGEST_GOAL + 2} bytes; the limit is {LARGEST_GOAL}"),
        ({"kind": "Month End"}, "/kind", "must be one word"),
        ({"constraints": "one"}, "/constraints", "must be an array"),
        ({"constraints": ["ok", 3]}, "/constraints/1", "must be a sentence"),
        ({"constraints": ["x" * 1023]}, "/constraints/0", "the limit is 1024"),
        ({"constraints": ["x"] * 51}, "/constraints", "has 51 entries; the limit is 50"),
        ({"constraints": ["x" * 200] * 40}, "/constraints", f"the limit is {LARGEST_CONSTRAINTS}"),
        ({"input": {"text": "x" * LARGEST_INPUT}}, "/input", f"the limit is {LARGEST_INPUT}"),
        ({"prompt_version": 3}, "/prompt_version", "must be a string, not the number 3"),
        ({"sealed": "yes"}, "/sealed", "must be true or false"),
        ({"steps": []}, "/steps", "it has 0"),
        ({"steps": {}}, "/steps", "must be an array"),
        ({"steps": [invoice(f"s{n}") for n in range(MOST_STEPS + 1)]}, "/steps", f"it has {MOST_STEPS + 1}"),
        ({"constrains": []}, "/constrains", 'did you mean "constraints"?'),
        ({"reasoning": "I think"}, "/reasoning", "model reasoning is not accepted"),
        ({"chain_of_thought": []}, "/chain_of_thought", "model reasoning is not accepted"),
    ],
)
def test_members_of_a_submission(wrong: dict[str, Any], path: str, says: str) -> None:
    found = faults_of({**document(), **wrong})
    assert list(found) == [path]
    assert says in found[path]


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        ({"name": "Invoice"}, "/name", "must begin with a-z"),
        ({"name": "x" * 101}, "/name", "100 characters at most"),
        ({"name": 1}, "/name", "must be a string"),
        ({"tool": "invoice.creat"}, "/tool", 'unknown tool; did you mean "invoice.create"?'),
        ({"tool": "zzz"}, "/tool", "unknown tool; published: invoice.create, mail.send"),
        ({"position": 0}, "/position", "must be an integer from 1 on"),
        ({"position": 1.5}, "/position", "must be an integer"),
        ({"position": True}, "/position", "must be an integer, not true"),
        ({"position": 2**31}, "/position", "must be an integer from 1 on"),
        ({"arguments": []}, "/arguments", "must be an object, not an array"),
        ({"arguments": {"customer": "acme", "cents": "1"}}, "/arguments/cents", "must be an integer"),
        ({"arguments": {"cents": 1}}, "/arguments/customer", "is missing"),
        ({"arguments": {"customer": "a", "cents": 1, "x": 1}}, "/arguments/x", "unknown member"),
        ({"arguments": {"customer": "x" * 300_000, "cents": 1}}, "/arguments", "the limit is 262144"),
        ({"thoughts": "hm"}, "/thoughts", "model reasoning is not accepted"),
        ({"argument": {}}, "/argument", 'did you mean "arguments"?'),
    ],
)
def test_members_of_a_step(wrong: dict[str, Any], path: str, says: str) -> None:
    found = faults(invoice(**wrong))
    assert list(found) == [f"/steps/0{path}"]
    assert says in found[f"/steps/0{path}"]


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ({"$result": "later#/facts"}, "step later is not over by then: it has position 3, this step has 2"),
        ({"$result": "beside#/facts"}, "step beside is not over by then: it has position 2"),
        ({"$result": "mail#/facts"}, "a step cannot refer to its own result"),
        ({"$result": "invoise#/facts"}, 'no step is named invoise; did you mean "invoice"?'),
        ({"$result": "nothing_like_it#/facts"}, "no step is named nothing_like_it"),
        ({"$result": "invoice#/fact/x"}, "a result has /operation_id and /facts, and nothing at /fact/x"),
        ({"$result": "invoice/facts"}, "names no result"),
        ({"$input": "/nothing"}, "the workflow's input has nothing at /nothing"),
        ({"$env": "SECRET"}, '"$env" is no reference'),
    ],
)
def test_references_reach_only_what_is_there_by_then(reference: dict[str, str], says: str) -> None:
    steps = [invoice(), mail(to=reference, position=2), invoice("beside", position=2), invoice("later")]
    found = faults(*steps)
    assert list(found) == ["/steps/1/arguments/to"]
    assert says in found["/steps/1/arguments/to"]


def test_a_literal_is_held_against_the_schema_as_what_it_holds() -> None:
    assert plan(mail(to={"$literal": "a@b.example"})).steps[0].arguments == '{"text":"","to":"a@b.example"}'
    later = {"to": {"$literal": 5}, "text": {"$result": "invoice#/operation_id"}}
    assert faults(invoice(), mail(arguments=later)) == {"/steps/1/arguments/to": "must be a string, not the number 5"}


def test_a_step_name_is_given_once() -> None:
    assert "every step needs a name of its own" in faults(invoice(), invoice())["/steps/1/name"]


def test_positions_never_go_back() -> None:
    found = faults(invoice("a", position=5), invoice("b", position=4), invoice("c"))
    assert found == {"/steps/1/position": "must be an integer from 5 on: steps come in order"}


def test_an_empty_installation_says_how_to_publish_tools() -> None:
    with pytest.raises(SubmissionInvalid, match="publish_tools"):
        plan_of(document(), {})


def test_every_fault_is_reported_at_once_in_the_order_of_the_document() -> None:
    text = json.dumps(
        {
            "goal": 1,
            "reasoning": "x",
            "input": {"n": 1},
            "steps": [
                invoice("Bad", tool="invoice.creat"),
                *(invoice(f"s{n}") for n in range(1, 10)),
                mail(to={"$result": "s1#/nope"}, more=1),
                5,
            ],
        }
    ).replace('"n": 1', '"n": 1e999, "m": 1, "m": 2')
    assert list(faults_in(text, "json")) == [
        "/goal",
        "/input",
        "/input/n",
        "/reasoning",
        "/steps/0/name",
        "/steps/0/tool",
        "/steps/10/arguments/to",
        "/steps/10/more",
        "/steps/11",
    ]


def test_where_a_value_cannot_be_read_nothing_else_is_said_about_it() -> None:
    text = json.dumps(document(invoice(arguments={"customer": "acme", "cents": 1}))).replace(
        '"cents": 1', '"cents": 1e99999'
    )
    assert list(faults_in(text, "json")) == ["/steps/0/arguments/cents"]


YAML = """
goal: Invoice acme.
steps:
  - name: invoice
    tool: invoice.create
    arguments: {customer: acme, cents: 12000.0}
"""


def test_yaml_and_json_are_two_spellings_of_one_plan() -> None:
    from_json = read_plan(json.dumps(document(invoice(), goal="Invoice acme.")), "json", TOOLS)
    assert read_plan(YAML, "yaml", TOOLS) == from_json
    assert read_plan(json.dumps(document(invoice(), goal="Invoice acme.")), "yaml", TOOLS) == from_json
    assert read_plan(b"\xef\xbb\xbf" + YAML.encode(), "yaml", TOOLS) == from_json


def yaml_value(text: str) -> Any:
    """What a YAML document says."""
    return read_document(text.encode(), "yaml").value


def test_anchors_and_aliases_are_written_out() -> None:
    assert yaml_value("a: &x {b: [1, '2']}\nc: *x") == {"a": {"b": [1, "2"]}, "c": {"b": [1, "2"]}}


def test_plain_scalars_are_what_json_would_say() -> None:
    text = "[1, -2.5, 1e3, true, False, null, ~, '1', \"no\", !!str 5, north, 1.2.3, '2026-01-01']"
    assert yaml_value(text) == [1, -2.5, 1000, True, False, None, None, "1", "no", "5", "north", "1.2.3", "2026-01-01"]


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        ("a: 2026-01-01", "/a", 'a date must be a quoted string: "2026-01-01"'),
        ("a: [2026-01-01T10:00:00Z]", "/a/0", "a date must be a quoted string"),
        ("a: no", "/a", "true or false to some readers"),
        ("a: 0x1F", "/a", "different numbers"),
        ("a: 017", "/a", "different numbers"),
        ("a: 12:30:00", "/a", "different numbers"),
        ("a: 1_000", "/a", "different numbers"),
        ("a: .nan", "/a", "not a JSON number"),
        ("a: -.inf", "/a", "not a JSON number"),
        ("a: 12345678901234567890", "/a", "beyond"),
        ('a: "\\0"', "/a", "NUL"),
        ("a: 1\na: 2", "", 'two members named "a"'),
        ("x: {a: 1, a: 2}", "/x", 'two members named "a"'),
        ("1: a", "", "must be a string; quote it"),
        ("no: a", "", "true or false to some readers"),
        ("? [a]\n: b", "", "not a collection"),
        ("x: {<<: {a: 1}}", "/x", "merging with << is not supported"),
        ("a: !!binary aGk=", "/a", "the tag tag:yaml.org,2002:binary is not supported"),
        ("a: !!python/name:os.system", "/a", "is not supported"),
        ("a: !!python/object/apply:os.system [ls]", "/a", "is not supported"),
        ("a: !thing {}", "/a", "is not supported"),
        ("a: *x", "/a", "no complete value before it"),
        ("a: &x [*x]", "/a/0", "no complete value before it"),
        ("a: [", "", "not YAML"),
        ("--- {}\n--- {}", "", "more than one document"),
        ("", "", "the document is empty"),
        ("a: " + "[" * 5000, "", "not YAML: exceeded maximum nesting depth"),
        ("a: " + "[" * 150 + "]" * 150, "/a" + "/0" * 99, "nested deeper than 100 levels"),
    ],
)
def test_yaml_that_is_not_plainly_json_is_refused(text: str, path: str, says: str) -> None:
    try:
        found = read_document(text.encode(), "yaml").faults
    except SubmissionInvalid as error:
        found = error.faults
    assert [fault.path for fault in found] == [path]
    assert says in found[0].message


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    names = "abcdefghijklmnop"
    lines = [
        f"a: &a {['x'] * 9}",
        *(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)),
    ]
    assert "the aliases expand to more than" in next(iter(faults_in("\n".join(lines), "yaml").values()))


def test_a_large_text_repeated_by_aliases_is_refused() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 200)}]"
    assert "the aliases expand to more than" in next(iter(faults_in(text, "yaml").values()))


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"x" * (LARGEST_DOCUMENT + 1), "the limit is 8388608 (8 MiB)"),
        (b'{"goal": "\xff"}', "not UTF-8: byte 10 cannot be read"),
        ("{}".encode("utf-16"), "not UTF-8: byte 0 cannot be read"),
        (b"[]", "must be an object, not an array"),
        (b"5", "must be an object, not the number 5"),
        (b"null", "the document is empty"),
    ],
)
def test_files_that_hold_no_workflow(data: bytes, format: Format, says: str) -> None:
    [(path, message)] = faults_in(data, format).items()
    assert path == ""
    assert says in message


@pytest.mark.parametrize(
    ("name", "data", "format"),
    [
        ("a.yaml", b"{}", "yaml"),
        ("a.YML", b"", "yaml"),
        ("a.json", b"a: 1", "json"),
        ("-", b' \n{"a": 1}', "json"),
        ("-", b"a: 1", "yaml"),
        ("plan.txt", b"[", "json"),
    ],
)
def test_the_format_follows_from_the_name_or_the_beginning(name: str, data: bytes, format: Format) -> None:
    assert format_of(name, data) == format
