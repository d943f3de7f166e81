"""`command.run` in the running system: what it printed is kept and passed on; a kill after its end costs nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from checkpoint.models import Artifact, Step
from checkpoint.states import CaseReason, WorkflowStatus
from tests.rig import Rig

pytestmark = pytest.mark.slow

LIST = """
[[command]]
name = "note"
program = "{program}"
arguments = ["{ledger}", "{{key}}"]
where_to_look = "Look for the key in the ledger."
deadline_seconds = 8
settle_seconds = 0.2
"""
PRINTED = b"line\n" * 1_000_000  # more than is kept


@dataclass
class Running:
    """A worker with one program that nobody can ask: it writes the key into a ledger, and prints more than is kept."""

    rig: Rig
    ledger: Path

    def times(self, step: Step) -> int:
        """How often the program wrote the step's key."""
        return self.ledger.read_text().splitlines().count(step.idempotency_key)


@pytest.fixture(scope="module")
def running(rig: Rig) -> Running:
    program, ledger = rig.folder / "note", rig.folder / "ledger"
    program.write_text('#!/bin/sh\necho "$2" >> "$1"\nyes line | head -n 1000000\n')
    program.chmod(0o755)
    listed = rig.folder / "commands.toml"
    listed.write_text(LIST.format(program=program, ledger=ledger))
    rig.worker(CHECKPOINT_COMMANDS=str(listed))
    return Running(rig, ledger)


NOTE: dict[str, Any] = {"name": "note", "tool": "command.run", "arguments": {"command": "note"}}


def test_what_it_printed_is_an_artifact_that_a_later_step_writes_to_a_file(running: Running) -> None:
    printed = {"artifact": {"$result": "note#/facts/stdout/artifact"}}
    write = {"name": "write", "tool": "file.write", "arguments": {"path": "printed.txt", "body": printed}}
    workflow = running.rig.rest(running.rig.submit(NOTE, write))
    assert workflow.status == WorkflowStatus.COMPLETED
    kept = PRINTED[: 4 * 1024 * 1024]
    (artifact,) = Artifact.objects.filter(workflow=workflow)
    receipt = running.rig.step(workflow, "note").receipt
    assert receipt is not None
    stdout = receipt.facts_value["stdout"]
    assert (artifact.name, artifact.size, artifact.media_type) == ("note.1.stdout.txt", len(kept), "text/plain")
    assert (stdout["artifact"], stdout["cut_to"]) == (f"sha256:{artifact.sha256}", len(kept))
    assert (stdout["bytes"], stdout["sha256"]) == (len(PRINTED), hashlib.sha256(PRINTED).hexdigest())
    assert "artifact" not in receipt.facts_value["stderr"], "nothing was printed there"
    assert (running.rig.folder / "files" / "printed.txt").read_bytes() == kept


def test_killed_after_it_had_ended_it_is_committed_by_itself(running: Running) -> None:
    running.rig.started[0].wait_whole()
    running.rig.crash.set("call/answered", "note")
    workflow = running.rig.rest(running.rig.submit(NOTE))
    assert running.rig.crash.happened()
    step = running.rig.step(workflow, "note")
    assert step.receipt is not None
    assert (workflow.status, step.receipt.kind) == (WorkflowStatus.COMPLETED, "flight_record")
    assert step.receipt.facts_value["stdout"]["bytes"] == len(PRINTED)
    assert (running.rig.cases(workflow), running.times(step)) == ([], 1)


def test_killed_before_its_end_was_known_it_is_one_question(running: Running) -> None:
    running.rig.started[0].wait_whole()
    running.rig.crash.set("command.run/ended", "note")
    workflow = running.rig.status(running.rig.submit(NOTE), WorkflowStatus.NEEDS_REVIEW)
    (case,) = running.rig.cases(workflow)
    assert case.reason == CaseReason.OUTCOME_UNKNOWN
    assert running.times(running.rig.step(workflow, "note")) == 1
