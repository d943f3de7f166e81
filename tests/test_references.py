"""Arguments that refer to earlier results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint.canonical import escape
from checkpoint.errors import ReferenceUnresolved
from checkpoint.planning.references import LARGEST_ARGUMENTS, Reference, resolve, scan, without_literals

RESULTS = {
    "invoice": {"operation_id": "INV-7", "facts": {"lines": [{"sku": "a/b~c", "": 0}], "paid": None, "~1": "tilde"}},
    "search": {"operation_id": None, "facts": {}},
}
R = {"$result": "invoice#/operation_id"}
INPUT = {"customer": {"id": 12}, "list": [1, [2, 3]]}


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ({"$result": "invoice#/operation_id"}, "INV-7"),
        ({"$result": "invoice#/facts/lines/0/sku"}, "a/b~c"),
        ({"$result": "invoice#/facts/lines/0/"}, 0),
        ({"$result": "invoice#/facts/~01"}, "tilde"),
        ({"$result": "invoice#/facts/paid"}, None),
        ({"$result": "search#"}, {"operation_id": None, "facts": {}}),
        ({"$input": "/customer"}, {"id": 12}),
        ({"$input": "/list/1/0"}, 2),
        ({"$input": ""}, INPUT),
    ],
)
def test_a_reference_stands_for_the_value_that_it_names(reference: dict[str, str], value: Any) -> None:
    assert resolve(reference, INPUT, RESULTS) == value
    assert resolve({"deep": [reference, 1]}, INPUT, RESULTS) == {"deep": [value, 1]}


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ({"$result": "refund#/facts"}, "step refund has no result to refer to; steps with a result: invoice, search"),
        ({"$result": "invoice#/facts/line"}, "there is an object with the members lines, paid, ~1"),
        ({"$result": "search#/facts/x"}, "at /facts there is an empty object"),
        ({"$result": "invoice#/facts/lines/1"}, "there is an array of 1"),
        ({"$result": "invoice#/facts/lines/00"}, "there is an array of 1"),
        ({"$result": "invoice#/facts/lines/-"}, "there is an array of 1"),
        ({"$result": "invoice#/operation_id/0"}, "there is a string"),
        ({"$result": "search#/operation_id/0"}, "there is null"),
        ({"$input": "/customer/id/x"}, "the workflow's input has nothing at /customer/id/x"),
        ({"$input": f"/list/{'9' * 5000}"}, "there is an array of 2"),
    ],
)
def test_a_reference_to_nothing_says_what_is_there_instead(reference: dict[str, str], says: str) -> None:
    with pytest.raises(ReferenceUnresolved) as refusal:
        resolve([reference], INPUT, RESULTS)
    assert says in str(refusal.value)


def test_the_message_tells_no_values() -> None:
    with pytest.raises(ReferenceUnresolved) as refusal:
        resolve({"$input": "/secret/x"}, {"secret": "hunter2"}, {})
    assert "hunter2" not in str(refusal.value)


def test_what_a_result_brings_in_is_data_and_is_not_followed() -> None:
    results = {"evil": {"operation_id": None, "facts": {"x": {"$result": "invoice#/operation_id"}}}, **RESULTS}
    assert resolve({"$result": "evil#/facts/x"}, {}, results) == {"$result": "invoice#/operation_id"}


def test_references_that_bring_in_too_much_are_refused() -> None:
    large = {"text": "x" * (LARGEST_ARGUMENTS // 10)}
    with pytest.raises(ReferenceUnresolved, match="bring in more than"):
        resolve([{"$input": ""}] * 11, large, {})
    assert resolve([{"$input": ""}] * 9, large, {}) == [large] * 9


def test_references_are_found_with_their_places() -> None:
    found, faults = scan({"a/b": [{"$result": "invoice#/facts"}, 1], "c": {"d": {"$input": "/x"}}})
    assert faults == []
    assert [(one.place, one.kind, one.step, one.pointer) for one in found] == [
        ("/a~1b/0", "result", "invoice", "/facts"),
        ("/c/d", "input", "", "/x"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"$ref": "#/x"},
        {"$": 1},
        {"$result": "invoice#/facts", "default": 1},
        {"$input": "/x", "$result": "invoice#"},
        {"$result": 1},
        {"$literal": 1, "more": 2},
        {"$result": ["invoice#"]},
        {"$result": "invoice"},
        {"$result": "Invoice#/facts"},
        {"$result": "#/facts"},
        {"$result": "invoice#facts"},
        {"$result": "invoice#/a~2"},
        {"$input": "x"},
        {"$input": "/a~"},
    ],
)
def test_what_looks_like_a_reference_and_is_none_is_a_fault(wrong: dict[str, Any]) -> None:
    found, faults = scan({"place": [wrong]})
    assert found == []
    assert [fault.path for fault in faults] == ["/place/0"]


def test_a_literal_stands_for_what_it_holds_and_is_not_looked_into() -> None:
    template = {"a": {"$literal": {"$oid": "507f"}}, "b": [{"$literal": {"$result": "no#/reference"}}, R]}
    assert scan(template) == ([Reference("/b/1", "result", "invoice", "/operation_id")], [])
    assert without_literals(template) == {"a": {"$oid": "507f"}, "b": [{"$result": "no#/reference"}, R]}
    assert resolve(template, {}, RESULTS) == {"a": {"$oid": "507f"}, "b": [{"$result": "no#/reference"}, "INV-7"]}


def test_an_object_with_several_names_may_use_dollar_signs() -> None:
    assert scan({"$filter": "x", "$top": 5}) == ([], [])


tokens = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(st.lists(tokens, min_size=1, max_size=4), st.integers())
def test_a_pointer_reaches_whatever_names_there_are(path: list[str], leaf: int) -> None:
    document: Any = leaf
    for name in reversed(path):
        document = {name: document}
    pointer = "".join(f"/{escape(name)}" for name in path)
    assert scan({"$input": pointer})[1] == []
    assert resolve({"$input": pointer}, document, {}) == leaf
