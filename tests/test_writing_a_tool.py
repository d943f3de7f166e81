"""The tool on the page is complete: what stands there is installed as a package and used as the engine uses it."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import RecoveryClass
from checkpoint.outcomes import Absent, Found, NotApplied, NotVisible, Visible
from checkpoint.planning.argument_schemas import check_schema, match_variant, prepare_arguments
from tests.http_driver import call
from tests.test_registry import install
from workers.publishing import declaration
from workers.registry import Tool, discover

PAGE = BASE_DIR / "docs" / "writing-a-tool.md"
TABLE = re.compile(r"CREATE TABLE awards \(.*?\)(?=`)")


def code() -> str:
    """The first block of Python on the page."""
    found = re.search(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tool]:
    """The page's tool, found by its entry point, beside a database with its table."""
    install(tmp_path, monkeypatch, "page_tool", "page_tool:AwardPoints", code())
    monkeypatch.chdir(tmp_path)
    create = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert create
    with closing(sqlite3.connect("points.sqlite3")) as shop:
        shop.execute(create[0])
    yield discover()["points.award"]
    monkeypatch.delitem(sys.modules, "page_tool")


def arguments(tool: Tool, **given: Any) -> Any:
    text = prepare_arguments(declaration(tool).schema, {"customer": "dana", "points": 50, **given})
    return tool.Arguments.model_validate_json(text, strict=True)


def rows() -> list[Any]:
    with closing(sqlite3.connect("points.sqlite3")) as shop:
        return shop.execute("SELECT customer, points FROM awards").fetchall()


def test_it_has_fewer_than_forty_lines_of_code() -> None:
    assert len([line for line in code().splitlines() if line.strip()]) < 40
    assert all(len(line) <= 120 for line in code().splitlines())


def test_it_can_be_published(tool: Tool) -> None:
    declared = declaration(tool)
    check_schema(declared.schema)
    variants = [{"name": one.name, "when": one.when} for one in declared.variants]
    assert match_variant(variants, {"customer": "dana", "points": 1}) == "keyed"
    assert declared.variants[0].contract.recovery is RecoveryClass.IDEMPOTENT


def test_an_effect_whose_answer_is_lost_is_found_and_not_doubled(tool: Tool) -> None:
    given, made = arguments(tool), call()
    assert tool.inspect(given, made) == Absent()
    receipt = tool.execute(given, made)
    assert tool.inspect(given, made) == Found(receipt)
    assert tool.execute(given, made) == receipt
    assert rows() == [("dana", 50)]
    assert tool.verify(given, made) == Visible()


def test_an_effect_with_other_arguments_is_seen_as_such(tool: Tool) -> None:
    made = call()
    tool.execute(arguments(tool), made)
    other = arguments(tool, points=51)
    found = tool.inspect(other, made)
    assert isinstance(found, Found)
    assert not found.receipt.arguments_match
    assert isinstance(tool.verify(other, made), NotVisible)


def test_it_says_when_nothing_can_have_happened(tool: Tool) -> None:
    with pytest.raises(NotApplied):
        tool.execute(arguments(tool), call(seconds=-1))
    assert rows() == []
    os.unlink("points.sqlite3")
    with pytest.raises(NotApplied) as refused:
        tool.execute(arguments(tool), call())
    assert refused.value.code == "no_table"
