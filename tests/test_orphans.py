"""Bytes that nobody names are taken away after the grace time, and never under a new reference."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.db import IntegrityError

from checkpoint import artifacts, clock
from checkpoint.artifacts import open_verified
from checkpoint.config.environment import BASE_DIR
from checkpoint.errors import BytesNotKept
from checkpoint.models import Artifact, LoosePath, StoredBytes, Workflow
from checkpoint.storage import stored_bytes
from tests import submissions as driver
from tests.case_driver import at_once
from tests.test_artifacts import BYTES, SHA256, files, folder, kept
from tests.worker_driver import CrashPlan

__all__ = ["folder"]

POINTS = ["artifact/announced", "artifact/uploaded", "artifact/kept"]


@pytest.fixture
def workflow(folder: Path) -> Workflow:
    """A workflow to keep things for."""
    return driver.submitted()


def age() -> None:
    """Everything was brought two days ago."""
    LoosePath.objects.update(since=clock.now() - timedelta(days=2))
    StoredBytes.objects.update(brought_at=clock.now() - timedelta(days=2))


def put(workflow: Workflow, folder: Path, crash: CrashPlan) -> int:
    """Brings the bytes in a process of its own; its exit code."""
    file = folder.parent / "report.txt"
    file.write_bytes(BYTES)
    environment = {**os.environ, "CHECKPOINT_HOME": str(folder.parent), "CHECKPOINT_CRASH_PLAN": str(crash.file)}
    command = [sys.executable, str(BASE_DIR / "manage.py"), "artifact", "put", str(workflow.pk), str(file)]
    return subprocess.run(command, env=environment, capture_output=True, timeout=60).returncode


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_between_the_bytes_and_the_row_leaves_what_is_collected(
    workflow: Workflow, folder: Path, point: str
) -> None:
    crash = CrashPlan(folder.parent)
    crash.set(point)
    assert put(workflow, folder, crash) == -signal.SIGKILL
    assert not Artifact.objects.exists()
    assert len(files(folder)) == (0 if point == POINTS[0] else 1)
    assert stored_bytes.collect() == 0, "within the grace time it could still be named"
    age()
    stored_bytes.collect()
    assert (files(folder), LoosePath.objects.count(), StoredBytes.objects.count()) == ([], 0, 0)


def test_a_collection_that_was_killed_goes_on(
    workflow: Workflow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts.keep_bytes([BYTES], largest=len(BYTES))
    age()
    with monkeypatch.context() as killed:
        killed.setattr(stored_bytes, "_take_away", lambda path: None)
        stored_bytes.collect()
    assert (len(files(folder)), StoredBytes.objects.count()) == (1, 0)
    artifact = kept(workflow)
    assert stored_bytes.collect() == 1
    with open_verified(artifact) as stored:
        assert stored.read() == BYTES


def test_what_an_artifact_names_stays_however_old_it_is(workflow: Workflow, folder: Path) -> None:
    artifact = kept(workflow)
    age()
    stored_bytes.collect()
    with open_verified(artifact) as stored:
        assert stored.read() == BYTES


def test_bytes_that_come_again_have_their_whole_grace_time_again(folder: Path) -> None:
    artifacts.keep_bytes([BYTES], largest=len(BYTES))
    age()
    artifacts.keep_bytes([BYTES], largest=len(BYTES))
    assert stored_bytes.collect() == 0


def test_an_upload_that_takes_longer_than_the_grace_time_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = stored_bytes._upload

    def slow(path: str, content: Any) -> None:
        upload(path, content)
        age()
        stored_bytes.collect()

    monkeypatch.setattr(stored_bytes, "_upload", slow)
    with pytest.raises(BytesNotKept):
        artifacts.keep_bytes([BYTES], largest=len(BYTES))
    assert files(folder) == []


def test_one_path_that_cannot_be_taken_away_holds_up_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        artifacts.keep_bytes([BYTES, bytes([number])], largest=len(BYTES) + 1)
    age()
    delete = default_storage.delete
    refused: list[str] = []

    def away(path: str) -> None:
        if not refused:
            refused.append(path)
            raise RuntimeError("the storage has errors of its own")
        delete(path)

    monkeypatch.setattr(default_storage, "delete", away, raising=False)
    stored_bytes.collect()
    assert [path.relative_to(folder).as_posix() for path in files(folder)] == refused
    stored_bytes.collect()
    assert files(folder) == []


def test_collecting_never_takes_bytes_from_under_a_new_artifact(
    workflow: Workflow, folder: Path, settings: Any
) -> None:
    """Grace time zero, so that everything unnamed is taken at once: each store either holds or is refused, whole."""
    settings.CHECKPOINT_ORPHAN_GRACE_HOURS = 0
    over = threading.Event()

    def collecting() -> int:
        taken = 0
        while not over.is_set():
            taken += stored_bytes.collect()
        return taken

    def storing(number: int) -> int:
        refused = 0
        try:
            for turn in range(25):
                try:
                    kept(workflow, b"shared bytes %d" % (turn // 2), name=f"{number}/{turn}")
                except BytesNotKept:
                    refused += 1
        finally:
            if number == 0:
                over.set()
        return refused

    outcomes = at_once(collecting, collecting, *[partial(storing, number) for number in range(3)])
    assert all(isinstance(outcome, int) for outcome in outcomes), outcomes
    stored_bytes.collect()
    named = set()
    for artifact in Artifact.objects.all():
        with open_verified(artifact) as stored:
            assert stored.read()
        named.add(artifact.sha256)
    assert named
    assert len(files(folder)) == len(named) == StoredBytes.objects.count()
    assert not LoosePath.objects.exists()


def test_the_database_refuses_an_artifact_without_bytes_and_bytes_taken_from_one(workflow: Workflow) -> None:
    with pytest.raises(IntegrityError, match="artifact_has_bytes"):
        Artifact.objects.create(workflow=workflow, name="x", media_type="text/plain", sha256=SHA256, size=1)
    kept(workflow)
    with pytest.raises(IntegrityError, match="named_stays"):
        StoredBytes.objects.all().delete()
