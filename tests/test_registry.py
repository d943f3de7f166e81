"""Tools are found in installed apps and in installed packages, and what is no tool is refused by name."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import modify_settings

from checkpoint.outcomes import NotApplied
from tests.example_app import tools as example_tools
from workers.registry import Deadline, Tool, ToolInvalid, ToolNameTaken, discover

with_example_app = modify_settings(INSTALLED_APPS={"append": "tests.example_app"})


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, entry_point: str, module: str = "") -> None:
    """Installs a package as pip does: a module and its metadata on the path."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[checkpoint.tools]\n{name} = {entry_point}\n")
    if module:
        (folder / f"{name}.py").write_text(module)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()


def tool_like(**changes: Any) -> Any:
    """Somebody else's tool: everything of the example's but for the changes."""
    members = ("name", "version", "summary", "Arguments", "variants", "execute", "inspect", "verify")
    return SimpleNamespace(**{name: getattr(example_tools.Greet(), name) for name in members} | changes)


def test_the_product_s_own_tools_are_found() -> None:
    assert {"http.request", "file.write"} <= set(discover())
    assert all(isinstance(tool, Tool) for tool in discover().values())


def test_a_tool_of_an_installed_app_is_found() -> None:
    assert "example.greet" not in discover()
    with with_example_app:
        assert discover()["example.greet"] is example_tools.TOOLS[0]


@pytest.mark.parametrize("attribute", ["Greet", "ready"])
def test_a_tool_of_an_installed_package_is_found_by_its_class_or_ready_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str
) -> None:
    name, module = f"somebody_{attribute.lower()}", "from tests.example_app.tools import Greet\nready = Greet()\n"
    install(tmp_path, monkeypatch, name, f"{name}:{attribute}", module)
    assert discover()["example.greet"].summary == "Greets somebody"


def test_a_package_that_is_also_an_installed_app_has_its_tool_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "both", "tests.example_app.tools:Greet")
    with with_example_app:
        assert discover()["example.greet"] is example_tools.TOOLS[0]


def test_two_tools_of_one_name_are_refused_with_both_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_tools, "TOOLS", [*example_tools.TOOLS, tool_like()])
    with with_example_app, pytest.raises(ToolNameTaken, match=r"example\.greet.*tests\.example_app\.tools"):
        discover()


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        ("not a tool", "it has no name, version"),
        (SimpleNamespace(name="x.y", version="1", summary="", Arguments=None), "it has no variants, execute"),
        (tool_like(name="Has Spaces"), "lower-case words"),
        (tool_like(Arguments=dict), "a pydantic model"),
    ],
)
def test_what_is_no_tool_is_refused_with_its_place(
    monkeypatch: pytest.MonkeyPatch, candidate: object, words: str
) -> None:
    monkeypatch.setattr(example_tools, "TOOLS", [candidate])
    with with_example_app, pytest.raises(ToolInvalid, match=words) as refused:
        discover()
    assert "tests.example_app.tools" in str(refused.value)


@pytest.mark.parametrize("entry_point", ["no_such_module:Tool", "tests.example_app.tools:Missing"])
def test_an_entry_point_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry_point: str
) -> None:
    install(tmp_path, monkeypatch, "broken", entry_point)
    with pytest.raises(ToolInvalid, match=f"entry point broken = {entry_point}"):
        discover()


def test_a_deadline_that_has_passed_stops_a_call_before_it_is_sent() -> None:
    Deadline.after(60).check_before_send()
    with pytest.raises(NotApplied) as refused:
        Deadline.after(-1).check_before_send()
    assert refused.value.code == "deadline_before_send"
