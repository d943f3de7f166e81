"""The artifact pages: a list, a look at what somebody put there, and downloads that no browser runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from checkpoint import artifacts
from checkpoint.models import Artifact, Workflow
from tests import factories
from tests import submissions as driver
from tests.console_driver import signed_in
from tests.test_artifacts import files, folder

__all__ = ["folder"]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def workflow(folder: Path) -> Workflow:
    """A workflow to keep things for."""
    return driver.submitted()


@pytest.fixture
def ida(workflow: Workflow) -> Client:
    """Somebody of the workflow's team."""
    return signed_in(factories.person("ida", teams=[workflow.team]))


def stored(workflow: Workflow, content: bytes, name: str = "report.txt") -> Artifact:
    return artifacts.store(workflow.pk, name, "text/html", [content], actor=driver.ACTOR)


def test_the_list_shows_sizes_and_whole_hashes(workflow: Workflow, ida: Client) -> None:
    artifact = stored(workflow, b"x" * 2048, "re\u202eport.txt")
    shown = ida.get(f"/workflows/{workflow.pk}/artifacts/").text
    for word in (artifact.sha256, "2.0\xa0KB", "U+202E", f"/artifacts/{artifact.pk}/content"):
        assert word in shown, word
    assert f"/workflows/{workflow.pk}/artifacts/" in ida.get(f"/workflows/{workflow.pk}/").text


def test_a_long_list_goes_on(workflow: Workflow, ida: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkpoint.queries.PAGE_SIZE", 2)
    made = [stored(workflow, bytes([number])) for number in range(3)]
    shown = ida.get(f"/workflows/{workflow.pk}/artifacts/?after={made[1].pk}").text
    assert [str(artifact.pk) in shown for artifact in made] == [False, False, True]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"plain <script>alert(1)</script>", "plain &lt;script&gt;alert(1)&lt;/script&gt;"),
        (b'{"paid": true}', '<code class="json">'),
        (PNG, "/picture"),
        (b"\0\1\2", "These bytes are no text"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "&lt;svg"),
        ("ä".encode() * 40_000, "the first 64 KiB"),
    ],
    ids=["text", "json", "picture", "bytes", "svg", "long"],
)
def test_a_look_at_one_marks_it_as_somebody_elses_and_runs_nothing(
    workflow: Workflow, ida: Client, content: bytes, wanted: str
) -> None:
    shown = ida.get(f"/artifacts/{stored(workflow, content).pk}/")
    assert (shown.status_code, wanted in shown.text) == (200, True)
    assert ("not checked by anybody" in shown.text) == (content[:1] != b"\0")
    assert "<script>alert" not in shown.text


def test_bytes_come_as_an_attachment_that_no_browser_runs(workflow: Workflow, ida: Client) -> None:
    answered = ida.get(f"/artifacts/{stored(workflow, b'<script>', 'evil.html').pk}/content")
    assert answered.getvalue() == b"<script>"
    assert answered["Content-Disposition"] == 'attachment; filename="evil.html"'
    assert answered["Content-Type"] == "application/octet-stream"
    assert answered["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answered["Content-Security-Policy"]
    assert answered["Content-Length"] == "8"


def test_a_picture_is_one_by_its_bytes_only(workflow: Workflow, ida: Client) -> None:
    answered = ida.get(f"/artifacts/{stored(workflow, PNG).pk}/picture")
    assert (answered["Content-Type"], answered.getvalue()) == ("image/png", PNG)
    assert ida.get(f"/artifacts/{stored(workflow, b'<svg/>', 'a.png').pk}/picture").status_code == 404


def test_damage_is_said_on_the_page_and_nothing_is_handed_out(workflow: Workflow, ida: Client, folder: Path) -> None:
    artifact = stored(workflow, b"x" * 100)
    files(folder)[0].write_bytes(b"y" * 100)
    shown = ida.get(f"/artifacts/{artifact.pk}/")
    assert (shown.status_code, "do not match their SHA-256" in shown.text) == (200, True)
    for way in ("content", "picture"):
        refused = ida.get(f"/artifacts/{artifact.pk}/{way}")
        assert (refused.status_code, "do not match their SHA-256" in refused.text) == (500, True)


def test_who_does_not_see_the_workflow_gets_nothing(workflow: Workflow) -> None:
    artifact = stored(workflow, PNG)
    eve = signed_in(factories.person("eve", teams=[factories.team("Elsewhere")]))
    paths = ("", "content", "picture")
    addresses: list[Any] = [f"/workflows/{workflow.pk}/artifacts/", *(f"/artifacts/{artifact.pk}/{p}" for p in paths)]
    assert {eve.get(address).status_code for address in addresses} == {404}
