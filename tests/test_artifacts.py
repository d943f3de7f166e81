"""Large things are what their row says, or they are not handed out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoint import audit
from checkpoint.artifacts import open_verified, store
from checkpoint.errors import ArtifactTooLarge, RecordDamaged
from checkpoint.models import Artifact, AuditEntry, Workflow
from tests import submissions as driver

BYTES = b"month-end report\n" * 1000
SHA256 = hashlib.sha256(BYTES).hexdigest()


@pytest.fixture
def folder(database: Any, settings: Any, tmp_path: Path) -> Path:
    """Where the bytes are."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


@pytest.fixture
def workflow(folder: Path) -> Workflow:
    """A workflow to keep things for."""
    return driver.submitted()


def kept(workflow: Workflow, content: bytes = BYTES) -> Artifact:
    """An artifact of these bytes."""
    chunks = (content[start : start + 100] for start in range(0, len(content), 100))
    return store(workflow, "report.txt", "text/plain", chunks, actor=driver.ACTOR)


def files(folder: Path) -> list[Path]:
    """Every file in the storage."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_was_stored_is_read_back_and_audited(workflow: Workflow) -> None:
    artifact = kept(workflow)
    assert (artifact.sha256, artifact.size) == (SHA256, len(BYTES))
    with open_verified(Artifact.objects.get()) as stored:
        assert stored.read() == BYTES
    assert AuditEntry.objects.filter(stream_id=workflow.pk, verb="keep").count() == 1
    assert list(audit.broken_links()) == []


def test_the_same_bytes_are_kept_once(workflow: Workflow, folder: Path) -> None:
    assert kept(workflow).sha256 == kept(workflow).sha256
    assert len(files(folder)) == 1
    assert Artifact.objects.count() == 2


@pytest.mark.parametrize("damaged", [BYTES[:-1], BYTES + b"x", b"x" * len(BYTES), b""])
def test_changed_bytes_are_not_handed_out(workflow: Workflow, folder: Path, damaged: bytes) -> None:
    artifact = kept(workflow)
    files(folder)[0].write_bytes(damaged)
    with pytest.raises(RecordDamaged, match="do not match"), open_verified(artifact):
        pass


def test_lost_bytes_are_said_to_be_lost(workflow: Workflow, folder: Path) -> None:
    artifact = kept(workflow)
    files(folder)[0].unlink()
    with pytest.raises(RecordDamaged, match="gone from storage"), open_verified(artifact):
        pass


def test_what_a_crash_left_half_written_is_replaced(workflow: Workflow, folder: Path) -> None:
    artifact = kept(workflow)
    files(folder)[0].write_bytes(BYTES[:10])
    kept(workflow)
    with open_verified(artifact) as stored:
        assert stored.read() == BYTES


def test_too_large_a_thing_is_refused_without_being_read_to_its_end(
    workflow: Workflow, folder: Path, settings: Any
) -> None:
    settings.CHECKPOINT_LARGEST_ARTIFACT = 1000
    read: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            read.append(100)
            yield b"x" * 100

    with pytest.raises(ArtifactTooLarge):
        store(workflow, "endless", "text/plain", endless(), actor=driver.ACTOR)
    assert sum(read) == 1100
    assert files(folder) == []
    assert not Artifact.objects.exists()
