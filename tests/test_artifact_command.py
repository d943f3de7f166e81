"""`manage.py artifact`: bytes in and out, with the rights of whom it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoint.models import Artifact
from tests import factories
from tests import submissions as driver
from tests.case_driver import command
from tests.test_artifacts import BYTES, SHA256, files, folder

__all__ = ["folder"]


@pytest.fixture
def report(folder: Path, tmp_path: Path) -> Path:
    """A file to put."""
    file = tmp_path / "report.txt"
    file.write_bytes(BYTES)
    return file


def test_what_is_put_is_listed_and_got_back(report: Path, tmp_path: Path) -> None:
    workflow = driver.submitted()
    code, out = command("artifact", "put", workflow.pk, report)
    assert (code, f"sha256:{SHA256}" in out) == (0, True)
    artifact = Artifact.objects.get()
    assert (artifact.name, artifact.media_type) == ("report.txt", "text/plain")
    assert f"sha256:{SHA256}" in command("artifact", "list", workflow.pk)[1]
    assert command("artifact", "get", artifact.pk, tmp_path / "back.txt") == (0, "")
    assert (tmp_path / "back.txt").read_bytes() == BYTES
    code, out = command("artifact", "get", artifact.pk, tmp_path / "back.txt")
    assert (code, "cannot be written" in out) == (1, True)


def test_damaged_bytes_are_not_written(report: Path, folder: Path, tmp_path: Path) -> None:
    command("artifact", "put", driver.submitted().pk, report)
    files(folder)[0].write_bytes(b"other")
    code, out = command("artifact", "get", Artifact.objects.get().pk, tmp_path / "back.txt")
    assert (code, "do not match" in out, (tmp_path / "back.txt").exists()) == (1, True, False)


def test_the_rights_are_those_of_who_is_named(report: Path) -> None:
    workflow = driver.submitted()
    factories.person("ida", teams=[workflow.team])
    factories.person("otto", teams=[workflow.team], groups=["Operator"])
    factories.person("eve", teams=[factories.team("Elsewhere")], groups=["Operator"])
    refused, hidden, done = [command("artifact", "put", workflow.pk, report, "--as", n) for n in ("ida", "eve", "otto")]
    assert (refused[0], "may not submit" in refused[1]) == (1, True)
    assert (hidden[0], "no workflow" in hidden[1].lower()) == (1, True)
    assert done[0] == 0
    assert command("artifact", "get", Artifact.objects.get().pk, "-", "--as", "eve")[0] == 1
