"""The running system against a real object store: killed when it had answered, nothing is stored twice or asked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from checkpoint import artifacts
from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Team, Workflow
from checkpoint.planning.documents import read_document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import CaseReason, Decision, Standing, StepStatus, WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit
from tests.object_server import SECRETS, ObjectServer, serve
from tests.rig import ACTOR, Rig
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.slow

WAIT_SECONDS = 90.0
BUCKETS = """
[[bucket]]
name = "reports"
bucket = "kept-bucket"
endpoint = "{endpoint}"
addressing = "path"
access_key = "TEST_ID"
secret_key = "TEST_KEY"
conditional_writes = true
conditional_deletes = true
versioned = true
deadline_seconds = 30.0
settle_seconds = 0.2
"""


@dataclass
class Archive:
    """The running system and its store."""

    rig: Rig
    server: ObjectServer

    def versions(self, key: str) -> tuple[int, int]:
        """How many versions and delete markers there are of a key."""
        listed = self.server.client.list_object_versions(Bucket="kept-bucket", Prefix=key)
        return len(listed.get("Versions", [])), len(listed.get("DeleteMarkers", []))


@pytest.fixture(scope="module")
def archive(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    for server in serve(tmp_path_factory.mktemp("objects")):
        buckets = rig.folder / "buckets.toml"
        buckets.write_text(BUCKETS.format(endpoint=server.endpoint))
        rig.env.update(SECRETS, CHECKPOINT_BUCKETS=str(buckets))
        rig.worker()
        yield Archive(rig, server)
        rig.started.pop().end()


def example() -> Workflow:
    """The example of the docs, as it stands."""
    document = read_document((BASE_DIR / "examples" / "tools" / "archiving.yaml").read_bytes(), "yaml")
    return submit(parse_plan(document, newest_tools()), team=Team.objects.get(slug="default"), actor=ACTOR)


def settled(archive: Archive, workflow: Workflow) -> dict[str, Any]:
    done = archive.rig.rest(workflow, WAIT_SECONDS)
    assert (done.status, archive.rig.cases(workflow)) == (WorkflowStatus.COMPLETED, [])
    assert {step.standing for step in workflow.steps.all()} == {Standing.VERIFIED}
    return {step.name: step for step in workflow.steps.select_related("receipt")}


@pytest.mark.parametrize("step", ["archive", "correct"])
def test_a_put_whose_answer_was_lost_is_found_and_not_repeated(archive: Archive, step: str) -> None:
    key = "2026/11/report.txt"
    for version in archive.server.client.list_object_versions(Bucket="kept-bucket", Prefix=key).get("Versions", []):
        archive.server.client.delete_object(Bucket="kept-bucket", Key=key, VersionId=version["VersionId"])
    archive.rig.crash.set("object.put/answered", step)
    workflow = example()
    steps = settled(archive, workflow)
    assert archive.rig.crash.happened()
    assert archive.versions(key) == (2, 0)
    assert {name: found.attempt_count for name, found in steps.items()} == {"archive": 1, "correct": 1}
    body = archive.server.client.get_object(Bucket="kept-bucket", Key=key)["Body"].read()
    assert body == b"November 2026: 15 invoices, 2 open"


def test_a_delete_whose_answer_was_lost_is_not_repeated_and_does_not_claim_whose_it_was(archive: Archive) -> None:
    stored = archive.server.client.put_object(Bucket="kept-bucket", Key="old.txt", Body=b"old")
    archive.rig.crash.set("object.delete/answered", "retire")
    arguments = {"bucket": "reports", "key": "old.txt", "etag": stored["ETag"].strip('"')}
    steps = settled(archive, archive.rig.submit({"name": "retire", "tool": "object.delete", "arguments": arguments}))
    assert archive.rig.crash.happened()
    assert archive.versions("old.txt") == (1, 1), "one marker, and what it hides is kept"
    assert steps["retire"].receipt.facts_value["outcome"] == "gone"


def test_a_step_whose_artifact_is_missing_asks_and_goes_on_when_it_was_brought(archive: Archive, settings: Any) -> None:
    settings.MEDIA_ROOT = Path(os.environ["CHECKPOINT_HOME"]) / "artifacts"  # the workers'
    content = b"a large body\n" * 100_000
    body = {"artifact": f"sha256:{hashlib.sha256(content).hexdigest()}"}
    arguments = {"bucket": "reports", "key": "large.bin", "body": body}
    workflow = archive.rig.submit({"name": "archive", "tool": "object.put", "arguments": arguments})
    case = wait_for(lambda: next(iter(archive.rig.cases(workflow)), None), WAIT_SECONDS)
    assert (case.reason, case.step.status) == (CaseReason.ARTIFACT_MISMATCH, StepStatus.FAILED)
    assert archive.versions("large.bin") == (0, 0)
    artifacts.bring(workflow.pk, "large.bin", "", [content], actor=ACTOR)
    archive.rig.decide(case, Decision.RETRY)
    archive.rig.status(workflow, WorkflowStatus.COMPLETED)
    assert archive.server.client.get_object(Bucket="kept-bucket", Key="large.bin")["Body"].read() == content
