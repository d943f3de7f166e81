"""Artifacts as tools use them; and a step whose artifact is lost or damaged sends nothing and asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpoint.contracts import RecoveryClass
from checkpoint.models import Artifact, Workflow
from checkpoint.outcomes import ARTIFACT_MISMATCH, NotApplied, Refused
from checkpoint.states import CaseReason, Decision, StepStatus, WorkflowStatus
from tests import journal_driver as journal
from tests import submissions as driver
from tests.http_driver import call
from tests.journal_driver import JournalDriver
from tests.test_artifacts import BYTES, SHA256, files, folder, kept
from workers.call_artifacts import ArtifactReference
from workers.registry import Call

__all__ = ["folder"]

REFERENCE = ArtifactReference(artifact=f"sha256:{SHA256}")


@pytest.fixture
def workflow(folder: Path) -> Workflow:
    """A workflow to keep things for."""
    return driver.submitted()


def call_of(workflow: Workflow) -> Call:
    return replace(call(), workflow_id=str(workflow.pk))


def test_a_tool_stores_what_it_made_once_and_opens_what_it_is_given(workflow: Workflow) -> None:
    made = call_of(workflow)
    assert made.artifacts.store("report.txt", "text/plain", [BYTES]) == f"sha256:{SHA256}"
    assert made.artifacts.store("report.txt", "text/plain", [BYTES]) == f"sha256:{SHA256}"
    assert Artifact.objects.count() == 1
    with made.artifacts.open(REFERENCE) as file:
        assert file.read() == BYTES
    assert made.artifacts.size(REFERENCE) == len(BYTES)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"x")], ids=["lost", "changed"])
def test_damaged_bytes_never_reach_a_tool(workflow: Workflow, folder: Path, damage: Any) -> None:
    kept(workflow)
    damage(files(folder)[0])
    with pytest.raises(NotApplied) as refusal, call_of(workflow).artifacts.open(REFERENCE):
        pytest.fail("the tool got bytes")
    assert (refusal.value.code, refusal.value.permanent) == (ARTIFACT_MISMATCH, True)


def test_what_the_tool_itself_raises_stays_what_it_is(workflow: Workflow) -> None:
    kept(workflow)
    with pytest.raises(ZeroDivisionError), call_of(workflow).artifacts.open(REFERENCE):
        raise ZeroDivisionError


def test_another_workflows_artifact_is_none(workflow: Workflow) -> None:
    kept(workflow)
    with pytest.raises(NotApplied, match="has no artifact"), call_of(driver.submitted()).artifacts.open(REFERENCE):
        pass


def test_a_storage_that_is_away_is_no_mismatch(workflow: Workflow, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(workflow)

    def away(path: str) -> Any:
        raise ConnectionError("no route")

    monkeypatch.setattr("checkpoint.storage.stored_bytes.read", away)
    with pytest.raises(NotApplied) as refusal, call_of(workflow).artifacts.open(REFERENCE):
        pass
    assert (refusal.value.code, refusal.value.permanent) == ("artifact_unreadable", False)


@pytest.mark.parametrize("recovery", [RecoveryClass.OPAQUE, RecoveryClass.IDEMPOTENT])
def test_a_step_whose_artifact_is_damaged_asks_and_goes_on_once_it_is_mended(
    folder: Path, recovery: RecoveryClass
) -> None:
    workflow = journal.submit(journal.contract(recovery))
    worker = JournalDriver()
    worker.report(worker.claim(), Refused("the bytes are gone", code=ARTIFACT_MISMATCH, permanent=True))
    asked = journal.case(workflow)
    assert (asked.reason, asked.closed_at) == (CaseReason.ARTIFACT_MISMATCH, None)
    assert "needs is missing, or is not what its hash says" in asked.sentence
    workflow.refresh_from_db()
    assert (journal.step(workflow).status, workflow.status) == (StepStatus.FAILED, WorkflowStatus.NEEDS_REVIEW)
    assert worker.turn() == [], "nothing is tried while the question is open"
    journal.answer(asked, Decision.RETRY)
    claim = worker.claim()
    assert claim.attempt_number == 2
    worker.report(claim, Refused("the bytes are gone", code=ARTIFACT_MISMATCH, permanent=True))
    journal.answer(workflow.cases.get(closed_at=None), Decision.ABANDON)
    workflow.refresh_from_db()
    assert (journal.step(workflow).status, workflow.status) == (StepStatus.ABANDONED, WorkflowStatus.ABANDONED)
