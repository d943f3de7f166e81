"""Arguments against a tool's schema: faults in sentences, defaults filled in, one text."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from checkpoint.errors import ArgumentsInvalid
from checkpoint.planning.argument_schemas import check_schema, closed, match_variant, prepare_arguments, template_faults
from checkpoint.planning.references import LARGEST_ARGUMENTS


class Card(BaseModel):
    """One way to pay."""

    kind: Literal["card"]
    three_d: bool = True


class Bank(BaseModel):
    """Another one."""

    kind: Literal["bank"]
    days: int = 14


class Line(BaseModel):
    """A line of an order."""

    sku: str = Field(pattern="^[a-z]+$")
    count: int = Field(default=1, ge=1)
    parts: list[Line] = []


class Order(BaseModel):
    """Everything that pydantic writes into a schema."""

    cents: int = Field(gt=0)
    active: bool = False
    rate: float = 1.0
    note: str | None = None
    pay: Annotated[Card | Bank, Field(discriminator="kind")] = Card(kind="card")
    lines: list[Line] = []
    by_name: dict[str, Line] = {}
    first: Line | None = None
    pair: tuple[int, str] = (1, "a")
    reference: int | str = 0


SCHEMA = closed(Order.model_json_schema())


def faults(value: Any, schema: dict[str, Any] = SCHEMA) -> dict[str, str]:
    """What is wrong, by place."""
    with pytest.raises(ArgumentsInvalid) as refusal:
        prepare_arguments(schema, value)
    return {fault.path: fault.message for fault in refusal.value.faults}


def test_pydantics_schema_can_be_used() -> None:
    check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ({"cents": 1}, {"active": False, "cents": 1.0, "rate": 1}),
        ({"cents": 1, "pay": {"kind": "bank"}}, {"cents": 1, "pay": {"days": 14, "kind": "bank"}}),
        ({"cents": 1, "lines": [{"sku": "a"}]}, {"cents": 1, "lines": [{"sku": "a", "parts": [], "count": 1.0}]}),
        ({"cents": 1, "first": {"sku": "a"}}, {"cents": 1, "first": {"sku": "a", "count": 1, "parts": []}}),
        ({"cents": 1, "by_name": {"x": {"sku": "a"}}}, {"cents": 1, "by_name": {"x": {"sku": "a", "count": 1}}}),
        (
            {"cents": 1, "lines": [{"sku": "a", "parts": [{"sku": "b"}]}]},
            {"cents": 1, "lines": [{"sku": "a", "parts": [{"sku": "b", "count": 1}]}]},
        ),
    ],
)
def test_what_the_schema_makes_equal_has_one_text(short: Any, long: Any) -> None:
    assert prepare_arguments(SCHEMA, short) == prepare_arguments(SCHEMA, long)


@given(
    st.fixed_dictionaries(
        {"cents": st.integers(1, 10**9)},
        optional={
            "active": st.booleans(),
            "rate": st.floats(0, 10**6),
            "note": st.none() | st.just("x"),
            "pay": st.sampled_from([{"kind": "card"}, {"kind": "bank", "days": 3}]),
            "lines": st.lists(st.sampled_from([{"sku": "a"}, {"sku": "b", "count": 2}]), max_size=3),
        },
    )
)
def test_preparing_is_idempotent_and_says_what_the_tools_own_model_reads(value: Any) -> None:
    text = prepare_arguments(SCHEMA, value)
    assert prepare_arguments(SCHEMA, json.loads(text)) == text
    assert Order.model_validate_json(text) == Order.model_validate(value)
    assert Order.model_validate_json(text).model_dump(mode="json") == json.loads(text)


def test_the_value_that_was_given_is_not_changed() -> None:
    value = {"cents": 1, "lines": [{"sku": "a"}]}
    prepare_arguments(SCHEMA, value)
    assert value == {"cents": 1, "lines": [{"sku": "a"}]}


def test_defaults_are_not_shared_between_arguments() -> None:
    first = json.loads(prepare_arguments(SCHEMA, {"cents": 1}))
    first["pay"]["kind"] = "changed"
    assert json.loads(prepare_arguments(SCHEMA, {"cents": 1}))["pay"]["kind"] == "card"


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        ({"cents": "1"}, "/cents", 'must be an integer, not the string "1"'),
        ({"cents": 1.5}, "/cents", "must be an integer, not the number 1.5"),
        ({"cents": True}, "/cents", "must be an integer, not true"),
        ({"cents": 0}, "/cents", "must be more than 0, not the number 0"),
        ({}, "/cents", "is missing"),
        ({"cents": 1, "activ": True}, "/activ", 'unknown member; did you mean "active"?'),
        ({"cents": 1, "xyz": 1}, "/xyz", "unknown member; known here: active, by_name"),
        ({"cents": 1, "note": 3}, "/note", "must be a string or null, not the number 3"),
        ({"cents": 1, "reference": None}, "/reference", "must be an integer or a string, not null"),
        ({"cents": 1, "pay": {"kind": "cash"}}, "/pay/kind", 'must be one of "bank", "card", not the string "cash"'),
        ({"cents": 1, "pay": {}}, "/pay/kind", 'is missing; it says which form is meant: "bank", "card"'),
        ({"cents": 1, "pay": {"kind": "bank", "days": "x"}}, "/pay/days", "must be an integer"),
        ({"cents": 1, "pay": 7}, "/pay", "must be an object, not the number 7"),
        ({"cents": 1, "lines": [{"sku": "A"}]}, "/lines/0/sku", "must match the pattern"),
        ({"cents": 1, "first": {"sku": "a", "count": 0}}, "/first/count", "must be at least 1"),
        ({"cents": 1, "pair": [1]}, "/pair", "must have at least 2 items; it has 1"),
        ({"cents": float("nan")}, "/cents", "must be an integer"),
        ({"cents": 1, "rate": float("inf")}, "/rate", "beyond"),
        ({"cents": 2**53}, "/cents", "beyond"),
        ({"cents": 1, "note": "\x00"}, "/note", "NUL"),
        ([], "", "must be an object, not an array"),
    ],
)
def test_a_fault_says_where_what_is_there_and_what_would_be_accepted(wrong: Any, path: str, says: str) -> None:
    found = faults(wrong)
    assert list(found) == [path]
    assert says in found[path]


def test_all_faults_are_said_at_once() -> None:
    wrong = {"cents": "x", "activ": 1, "lines": [{"sku": "a"}, {"count": "2"}], "pay": {"kind": "bank", "days": []}}
    assert list(faults(wrong)) == ["/activ", "/cents", "/lines/1/count", "/lines/1/sku", "/pay/days"]


def test_a_message_does_not_repeat_a_large_value() -> None:
    assert len(faults({"cents": "x" * 10_000})["/cents"]) < 150


def test_arguments_are_limited_in_size() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    fits = LARGEST_ARGUMENTS - len('{"text":""}')
    prepare_arguments(schema, {"text": "x" * fits})
    assert "larger than" in faults({"text": "x" * (fits + 1)}, schema)[""]


@pytest.mark.parametrize("text", ["2026-13-01", "yesterday", "2026-02-30"])
def test_formats_are_checked(text: str) -> None:
    schema = {"properties": {"day": {"type": "string", "format": "date"}}}
    assert 'format "date"' in faults({"day": text}, schema)["/day"]


def test_defaults_without_end_are_an_error_and_no_crash() -> None:
    endless = {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A", "default": {}}}}}}
    with pytest.raises(RecursionError, match="without end"):
        prepare_arguments(endless, {})


def test_several_fitting_alternatives_are_left_as_they_are() -> None:
    either = [{"type": "object", "properties": {name: {"default": 1}}} for name in ("a", "b")]
    assert prepare_arguments({"anyOf": either}, {}) == "{}"


def test_a_schema_is_never_fetched() -> None:
    with pytest.raises(ValueError, match="only entries of its own"):
        check_schema({"properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}})


R = {"$result": "earlier#/facts/x"}


@pytest.mark.parametrize(
    ("template", "places", "paths"),
    [
        ({"cents": R}, ["/cents"], []),
        ({"cents": R, "activ": 1}, ["/cents"], ["/activ"]),
        ({"active": R}, ["/active"], ["/cents"]),
        ({"cents": 1, "pay": R}, ["/pay"], []),
        ({"cents": 1, "pay": {"kind": R}}, ["/pay/kind"], []),
        ({"cents": 1, "pay": {"kind": "bank", "days": R}}, ["/pay/days"], []),
        ({"cents": 1, "first": {"sku": R}}, ["/first/sku"], []),
        ({"cents": 1, "first": {"sku": R, "cout": 1}}, ["/first/sku"], ["/first/cout"]),
        ({"cents": 1, "lines": [R, {"sku": 1}]}, ["/lines/0"], ["/lines/1/sku"]),
        ({"cents": 1, "lines": R, "by_name": {"a/b": {"sku": R}}}, ["/lines", "/by_name/a~1b/sku"], []),
        ({"cents": 1, "pair": [R]}, ["/pair/0"], ["/pair"]),
        (R, [""], []),
    ],
)
def test_of_a_template_only_what_is_certain_is_a_fault(template: Any, places: list[str], paths: list[str]) -> None:
    assert [fault.path for fault in template_faults(SCHEMA, template, places)] == paths


VARIANTS = [
    {
        "name": "keyed",
        "when": {"properties": {"method": {"const": "POST"}, "key": {"type": "string"}}, "required": ["key"]},
    },
    {"name": "reading", "when": {"properties": {"method": {"const": "GET"}}}},
]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"method": "POST", "key": "k"}, "keyed"), ({"method": "GET", "key": "k"}, "reading"), ({}, "reading")],
)
def test_the_first_variant_that_matches_counts(arguments: Any, name: str) -> None:
    assert match_variant(VARIANTS, arguments) == name


def test_no_matching_variant_is_said() -> None:
    with pytest.raises(ArgumentsInvalid, match="keyed, reading"):
        match_variant(VARIANTS, {"method": "DELETE"})


class Ignoring(BaseModel):
    """Ignores what it does not know, as pydantic's models do unless told otherwise."""

    inner: Line
    open: dict[str, int] = {}


class Open(BaseModel, extra="allow"):
    """Takes anything."""


def test_what_a_model_would_ignore_is_refused() -> None:
    schema = closed(Ignoring.model_json_schema())
    assert list(faults({"inner": {"sku": "a", "colour": "red"}, "more": 1}, schema)) == ["/inner/colour", "/more"]
    assert json.loads(prepare_arguments(schema, {"inner": {"sku": "a"}, "open": {"any": 1}}))["open"] == {"any": 1}
    assert prepare_arguments(closed(Open.model_json_schema()), {"any": 1}) == '{"any":1}'
