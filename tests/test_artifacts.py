"""Large things are what their row says, or they are not handed out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from checkpoint import artifacts, audit
from checkpoint.artifacts import chunks_of, open_verified, store
from checkpoint.errors import ArtifactMismatch, ArtifactTooLarge, BytesNotKept, NotFound
from checkpoint.models import Artifact, AuditEntry, StoredBytes, Workflow
from tests import factories
from tests import submissions as driver
from tests.case_driver import at_once

BYTES = b"month-end report\n" * 1000
SHA256 = hashlib.sha256(BYTES).hexdigest()


@pytest.fixture
def folder(database: Any, settings: Any, tmp_path: Path) -> Path:
    """Where the bytes are."""
    settings.MEDIA_ROOT = tmp_path / "artifacts"
    return tmp_path / "artifacts"


@pytest.fixture
def workflow(folder: Path) -> Workflow:
    """A workflow to keep things for."""
    return driver.submitted()


def kept(workflow: Workflow, content: bytes = BYTES, name: str = "report.txt") -> Artifact:
    """An artifact of these bytes."""
    chunks = (content[start : start + 100] for start in range(0, len(content), 100))
    return store(workflow.pk, name, "text/plain", chunks, actor=driver.ACTOR)


def files(folder: Path) -> list[Path]:
    """Every file in the storage."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_was_stored_is_read_back_and_audited(workflow: Workflow) -> None:
    version = workflow.version
    artifact = kept(workflow)
    assert (artifact.sha256, artifact.size) == (SHA256, len(BYTES))
    with open_verified(Artifact.objects.get()) as stored:
        assert stored.read() == BYTES
    assert AuditEntry.objects.filter(stream_id=workflow.pk, verb="keep").count() == 1
    assert list(audit.broken_links()) == []
    workflow.refresh_from_db()
    assert workflow.version == version + 1, "a resume packet made now lists it"


def test_nothing_in_it_is_an_artifact_too(workflow: Workflow) -> None:
    with open_verified(kept(workflow, b"")) as stored:
        assert stored.read() == b""
    assert b"".join(chunks_of(Artifact.objects.get())) == b""


def test_the_same_bytes_are_kept_once(workflow: Workflow, folder: Path) -> None:
    other = driver.submitted()
    assert kept(workflow).pk == kept(workflow).pk, "whoever stores its result again after a crash gets the same one"
    assert len({kept(workflow).pk, kept(workflow, name="copy.txt").pk, kept(other).pk}) == 3
    assert len(files(folder)) == StoredBytes.objects.count() == 1


def test_the_same_bytes_at_once_are_kept_once(workflow: Workflow, folder: Path) -> None:
    workflows = [workflow, *(driver.submitted() for _ in range(7))]
    made = at_once(*[partial(kept, one) for one in workflows])
    assert [artifact.sha256 for artifact in made] == [SHA256] * 8
    assert len(files(folder)) == StoredBytes.objects.count() == 1
    assert at_once(*[partial(kept, workflow, name="one name") for _ in range(4)]) == [
        Artifact.objects.get(name="one name")
    ] * 4  # fmt: skip


@pytest.mark.parametrize("damaged", [BYTES[:-1], BYTES + b"x", b"x" * len(BYTES), b""])
def test_changed_bytes_are_not_handed_out(
    workflow: Workflow, folder: Path, damaged: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = kept(workflow)
    files(folder)[0].write_bytes(damaged)
    with pytest.raises(ArtifactMismatch, match="do not match"), open_verified(artifact):
        pass
    with pytest.raises(ArtifactMismatch):
        chunks_of(artifact)
    monkeypatch.setattr(artifacts, "CHECKED_FIRST", 100)
    handed: list[bytes] = []
    with pytest.raises(ArtifactMismatch):
        handed.extend(chunks_of(artifact))
    assert len(b"".join(handed)) < artifact.size, "what is checked on its way is cut off before its end"


def test_what_is_too_large_to_be_checked_first_is_checked_on_its_way(
    workflow: Workflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "CHECKED_FIRST", 100)
    content = bytes(range(256)) * 1000
    assert b"".join(chunks_of(kept(workflow, content))) == content


def test_lost_bytes_are_said_to_be_lost(workflow: Workflow, folder: Path) -> None:
    artifact = kept(workflow)
    files(folder)[0].unlink()
    with pytest.raises(ArtifactMismatch, match="gone from storage"), open_verified(artifact):
        pass


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(BYTES[:10])], ids=["lost", "changed"])
def test_bringing_the_right_bytes_again_mends_what_is_damaged(workflow: Workflow, folder: Path, damage: Any) -> None:
    artifact = kept(workflow)
    damage(files(folder)[0])
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

    with pytest.raises(ArtifactTooLarge, match="more than the 1,000 bytes"):
        store(workflow.pk, "endless", "text/plain", endless(), actor=driver.ACTOR)
    assert sum(read) == 1100
    assert files(folder) == []
    assert not Artifact.objects.exists()


def test_a_workflow_has_so_many_bytes_also_when_several_come_at_once(workflow: Workflow, settings: Any) -> None:
    settings.CHECKPOINT_ARTIFACTS_PER_WORKFLOW = 250
    outcomes = at_once(*[partial(kept, workflow, bytes([n]) * 100, name=str(n)) for n in range(6)])
    assert sum(isinstance(outcome, ArtifactTooLarge) for outcome in outcomes) == 4, outcomes
    assert sorted(Artifact.objects.values_list("size", flat=True)) == [100, 100], "what was stored stays"
    kept(driver.submitted(), b"x" * 200)


def test_who_sees_the_workflow_sees_the_artifact_and_nobody_finds_it_by_its_hash(workflow: Workflow) -> None:
    artifact = kept(workflow)
    insider = factories.person("ida", teams=[workflow.team])
    outsider = factories.person("eve", teams=[factories.team("Elsewhere")])
    assert artifacts.visible_artifact(insider, artifact.pk) == artifact
    with pytest.raises(NotFound):
        artifacts.visible_artifact(outsider, artifact.pk)
    theirs = factories.workflow(team=factories.team("Elsewhere"))
    with pytest.raises(ArtifactMismatch, match="has no artifact"):
        artifacts.of_hash(theirs.pk, SHA256)
    assert artifacts.of_hash(workflow.pk, SHA256) == artifact


def test_bytes_that_were_collected_are_brought_again_not_named(workflow: Workflow) -> None:
    kept_ = artifacts.keep_bytes([BYTES], largest=len(BYTES))
    StoredBytes.objects.all().delete()
    with pytest.raises(BytesNotKept):
        artifacts._record(
            Artifact(workflow=workflow, name="late", media_type="text/plain", **vars(kept_)), driver.ACTOR
        )
    assert not Artifact.objects.exists()
