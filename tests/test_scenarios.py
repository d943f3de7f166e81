"""Every scenario that goes wrong in practice has its tests, or says what it waits for. See tests/scenarios.toml."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from typing import Any

import pytest

from checkpoint.config.environment import BASE_DIR

TESTS = BASE_DIR / "tests"
IDS = [f"S{number:02}" for part in (range(1, 26), range(30, 40), range(40, 49), range(50, 53)) for number in part]
SCENARIOS: dict[str, dict[str, Any]] = tomllib.loads((TESTS / "scenarios.toml").read_text(encoding="utf-8"))


@cache
def collected(module: str) -> frozenset[str]:
    """The tests of a module under tests/, those in classes as Class::name; none where there is no such module."""
    file = TESTS / f"{module}.py"
    if not file.exists():
        return frozenset()
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def named_after_scenarios() -> list[tuple[str, str]]:
    """Every test whose name carries scenario ids, as test_s05_s06_… does, with each of them."""
    found = []
    for file in sorted(TESTS.rglob("test_*.py")):
        module = str(file.relative_to(TESTS).with_suffix(""))
        for test in sorted(collected(module)):
            ids = re.match(r"test((?:_s\d\d)+)_", test.rpartition("::")[2])
            found += [(id.upper(), f"{module}::{test}") for id in (ids.group(1).split("_")[1:] if ids else [])]
    return found


def test_the_map_has_every_scenario_and_no_other() -> None:
    assert list(SCENARIOS) == IDS


@pytest.mark.parametrize("id", IDS)
def test_a_scenario_has_tests_or_says_what_it_waits_for(id: str) -> None:
    scenario = SCENARIOS[id]
    assert set(scenario) <= {"what", "tests", "pending"}
    assert scenario["what"]
    assert scenario.get("tests") or scenario.get("pending")


@pytest.mark.parametrize("id", IDS)
def test_the_tests_of_a_scenario_exist(id: str) -> None:
    named = SCENARIOS[id].get("tests", [])
    missing = [name for name in named if name.partition("::")[2] not in collected(name.partition("::")[0])]
    assert missing == []
    assert len(named) == len(set(named))


def test_a_test_that_is_named_after_a_scenario_is_on_the_map() -> None:
    missing = [(id, test) for id, test in named_after_scenarios() if test not in SCENARIOS[id].get("tests", [])]
    assert missing == [], "add them to tests/scenarios.toml"
