"""One text for one value (S51), by one function (S52)."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from checkpoint.canonical import canonical, check, faults_in, idempotency_key, parse, read, sha256_hex
from checkpoint.errors import ValueNotCanonical
from checkpoint.planning.exact_numbers import number_problem

VECTORS = Path(__file__).parent / "vectors"


def vectors(name: str) -> Any:
    """A file of vectors."""
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


names = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not number_problem(number)
)
values = st.recursive(
    st.none() | st.booleans() | numbers | names,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_the_canonical_text_is_a_fixed_point(value: Any) -> None:
    text = canonical(value)
    assert canonical(parse(text)) == text
    assert parse(text) == value


@given(values)
def test_every_text_is_the_librarys(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value).decode()


@given(values, st.randoms())
def test_order_of_members_and_white_space_change_nothing(value: Any, random: Any) -> None:
    spelled = json.dumps(_shuffled(value, random), indent=random.choice([None, 1, "\t"]))
    assert canonical(parse(spelled)) == canonical(value)


def _shuffled(value: Any, random: Any) -> Any:
    if isinstance(value, dict):
        members = list(value.items())
        random.shuffle(members)
        return {name: _shuffled(member, random) for name, member in members}
    return [_shuffled(item, random) for item in value] if isinstance(value, list) else value


@given(st.integers(-(2**53) + 1, 2**53 - 1))
def test_a_whole_number_has_one_text_as_integer_and_as_float(number: int) -> None:
    assert canonical(float(number)) == canonical(number) == str(number)


@given(st.text() | st.binary() | st.recursive(st.just("["), lambda inner: inner.map(lambda text: text * 2)))
def test_whatever_is_read_either_has_faults_or_a_canonical_text(text: str | bytes) -> None:
    value, faults = read(text)
    if not faults:
        canonical(value)


@given(st.floats())
def test_a_float_is_carried_exactly_or_refused(number: float) -> None:
    try:
        text = canonical(number)
    except ValueNotCanonical:
        assert number_problem(number)
    else:
        assert float(text) == number == parse(text)


@pytest.mark.parametrize("vector", vectors("rfc8785_documents"), ids=lambda vector: vector["source"])
def test_the_documents_of_the_rfc(vector: dict[str, str]) -> None:
    assert canonical(json.loads(vector["json"])) == vector["canonical"]


@pytest.mark.parametrize("vector", vectors("rfc8785_numbers")["numbers"], ids=lambda vector: vector["ieee754"])
def test_the_numbers_of_the_rfc(vector: dict[str, Any]) -> None:
    [number] = struct.unpack(">d", bytes.fromhex(vector["ieee754"]))
    if vector["refused"]:
        with pytest.raises(ValueNotCanonical):
            canonical(number)
    else:
        assert canonical(number) == vector["text"]


@pytest.mark.parametrize("vector", vectors("spellings"), ids=lambda vector: vector["canonical"])
def test_spellings_of_one_value_have_one_text(vector: dict[str, Any]) -> None:
    assert {canonical(parse(text)) for text in vector["json"]} == {vector["canonical"]}


@pytest.mark.parametrize("vector", vectors("refused"), ids=lambda vector: vector["json"] or "nothing")
def test_what_cannot_be_carried_is_refused_with_its_place(vector: dict[str, str]) -> None:
    with pytest.raises(ValueNotCanonical) as refusal:
        parse(vector["json"])
    assert refusal.value.path == vector["path"]
    assert vector["says"] in refusal.value.message


def test_every_fault_of_a_document_is_read_at_once() -> None:
    _, faults = read('{"a": NaN, "b": [1, 1e400, {"c": 1, "c": "\\u0000"}]}')
    assert [fault.path for fault in faults] == ["/a", "/b/1", "/b/2", "/b/2/c"]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [101, 1_000, 5_000, 200_000])
def test_endless_nesting_is_a_fault_and_no_crash(opening: str, depth: int) -> None:
    closing = {"[": "]", '{"a":': "}"}[opening]
    for text in (opening * depth, opening * depth + "1" + closing * depth):
        with pytest.raises(ValueNotCanonical):
            parse(text)


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(ValueNotCanonical, match="byte 2 cannot be read"):
        parse(b'["\xff"]')


class Odd:
    """Something that is no JSON value."""


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1: "a"}, ""),
        ({"a": {2}}, "/a"),
        ([b"a"], "/0"),
        ({"a": [Odd()]}, "/a/0"),
        (float("nan"), ""),
        ([2**53], "/0"),
        ({"\ud800": 1}, ""),
    ],
)
def test_values_that_are_no_json_are_refused(value: Any, path: str) -> None:
    assert [fault.path for fault in faults_in(value)] == [path]
    for refuse in (check, canonical):
        with pytest.raises(ValueNotCanonical):
            refuse(value)


def test_the_key_of_an_effect_never_changes() -> None:
    vector = vectors("idempotency_key")
    parts = {name: vector[name] for name in ("workflow_id", "step_name", "tool", "arguments")}
    assert idempotency_key(**parts) == sha256_hex(vector["hashed"]) == vector["key"]


@given(names, names, names, values)
def test_the_key_is_taken_over_the_canonical_object(workflow: str, step: str, tool: str, arguments: Any) -> None:
    whole = canonical({"workflow_id": workflow, "step_name": step, "tool": tool, "arguments": arguments})
    key = idempotency_key(workflow_id=workflow, step_name=step, tool=tool, arguments=canonical(arguments))
    assert key == sha256_hex(whole)
