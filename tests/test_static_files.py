"""Stylesheet and scripts come from the web process, to anybody, whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from checkpoint.config.environment import BASE_DIR

FILES = ["checkpoint.css", "console.js", "icon.svg", "vendor/htmx-4.0.1/htmx.min.js"]


@pytest.mark.parametrize("name", FILES)
def test_a_static_file_is_whole_and_needs_no_account(name: str) -> None:
    answered = Client().get(f"/static/{name}")
    assert answered.status_code == 200
    assert answered.content == Path(BASE_DIR, "static", name).read_bytes()
    assert answered["Content-Length"] == str(len(answered.content))
    assert answered["X-Content-Type-Options"] == "nosniff"


def test_a_static_file_that_did_not_change_is_not_sent_again() -> None:
    first = Client().get("/static/console.js")
    again = Client().get("/static/console.js", headers={"If-Modified-Since": first["Last-Modified"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_static_file_is_only_read() -> None:
    assert Client().post("/static/console.js").status_code == 405
    assert Client().head("/static/console.js").content == b""
