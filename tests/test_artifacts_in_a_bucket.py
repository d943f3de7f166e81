"""Artifacts whose bytes are in an S3-compatible bucket, on a real server: the same promises as in files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from checkpoint import artifacts
from checkpoint.artifacts import open_verified
from checkpoint.config import environment
from checkpoint.errors import ArtifactMismatch
from checkpoint.models import LoosePath, StoredBytes
from checkpoint.storage import stored_bytes
from tests import submissions as driver
from tests.case_driver import at_once
from tests.object_server import ID, KEY, ObjectServer, serve
from tests.test_artifacts import BYTES, SHA256, kept
from tests.test_orphans import age


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    yield from serve(tmp_path_factory.mktemp("objects"))


@pytest.fixture
def bucket(database: Any, server: ObjectServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The storage is the bucket, by the settings that an operator makes; what is in it is told past the storage."""
    prefix = "CHECKPOINT_ARTIFACTS_"
    values = {"BUCKET": "plain-bucket", "ENDPOINT": server.endpoint, "ACCESS_KEY": ID, "SECRET_KEY": KEY}
    for name, value in {**values, "REGION": "us-east-1", "ADDRESSING": "path"}.items():
        monkeypatch.setenv(prefix + name, value)
    settings.STORAGES = environment.storages()

    def keys() -> list[str]:
        return [found["Key"] for found in server.client.list_objects_v2(Bucket="plain-bucket").get("Contents", [])]

    for key in keys():
        server.client.delete_object(Bucket="plain-bucket", Key=key)
    return keys


def test_bytes_go_to_the_bucket_once_and_come_back_whole(bucket: Any) -> None:
    large = bytes(range(256)) * 40_000  # more than one part, more than is held in memory
    made = at_once(*[partial(kept, driver.submitted(), BYTES) for _ in range(4)])
    assert {artifact.sha256 for artifact in made} == {SHA256}
    assert len(bucket()) == 1
    with open_verified(artifacts.store(driver.submitted().pk, "l", "", [large], actor=driver.ACTOR)) as stored:
        assert stored.read() == large


@pytest.mark.parametrize("lost", [False, True])
def test_damage_and_loss_are_noticed_and_mended(bucket: Any, server: ObjectServer, lost: bool) -> None:
    workflow = driver.submitted()
    artifact = kept(workflow)
    where = {"Bucket": "plain-bucket", "Key": bucket()[0]}
    server.client.delete_object(**where) if lost else server.client.put_object(**where, Body=b"other")
    with pytest.raises(ArtifactMismatch), open_verified(artifact):
        pass
    kept(workflow)
    with open_verified(artifact) as stored:
        assert stored.read() == BYTES


def test_orphans_are_collected(bucket: Any) -> None:
    artifacts.keep_bytes([BYTES], largest=len(BYTES))
    assert len(bucket()) == 1
    age()
    assert stored_bytes.collect() == 1
    assert (bucket(), StoredBytes.objects.count(), LoosePath.objects.count()) == ([], 0, 0)
