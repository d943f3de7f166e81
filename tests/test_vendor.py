"""Copied browser libraries are what their packages hold, and nothing else lies beside them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from checkpoint.config.environment import BASE_DIR

FOLDERS = [*BASE_DIR.glob("static/vendor/*"), *BASE_DIR.glob("tests/vendor/*")]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_vendored_files_match_their_sums(folder: Path) -> None:
    lines = (folder / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    listed = {name: digest for digest, name in (line.split() for line in lines)}
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    del found["SHA256SUMS"]
    assert found == listed
    assert "LICENSE" in found


def test_htmx_and_axe_are_vendored() -> None:
    assert {folder.name for folder in FOLDERS} == {"htmx-4.0.1", "axe-core-4.14.1"}


def test_pages_name_the_vendored_htmx() -> None:
    assert "vendor/htmx-4.0.1/htmx.min.js" in (BASE_DIR / "templates" / "base.html").read_text(encoding="utf-8")
