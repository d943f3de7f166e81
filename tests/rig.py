"""Everything running: the test's database, the sandbox, real workers, the scheduler. One for each test module.

The database is emptied before and after the module, not between its tests: a running worker is registered in it. Each
test has workflows of its own.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from approvals.decisions import decide
from approvals.models import Decision
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.models import Case, PolicyVersion, Step, Team, WorkerProcess, Workflow
from checkpoint.people import Actor
from checkpoint.planning.documents import read_document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit
from tests import flush
from tests.sandbox_driver import SandboxProcess, wait_for
from tests.worker_driver import CeleryWorker, CrashPlan, beat

ACTOR = Actor(name="tests", channel="command")
AT_REST = (WorkflowStatus.COMPLETED, WorkflowStatus.NEEDS_REVIEW, WorkflowStatus.ABANDONED)
DEADLINE, SETTLE = 1.5, 0.3
HURRIED = {"retry_base": 0.05, "inspection_base": 0.05, "verification_base": 0.05, "verification_deadline": 1.0}
WAIT_SECONDS = 45.0


@dataclass
class Rig:
    """What a test of the running system speaks."""

    folder: Path
    sandbox: SandboxProcess
    crash: CrashPlan
    env: dict[str, str]
    started: list[CeleryWorker] = field(default_factory=list)

    def worker(self, *, processes: int = 1, **env: str) -> CeleryWorker:
        """Starts another worker."""
        name = f"worker{len(self.started)}"
        worker = CeleryWorker(self.folder, processes=processes, env={**self.env, **env}, name=name)
        self.started.append(worker)
        return worker

    def submit(self, *steps: dict[str, Any], **members: Any) -> Workflow:
        """Submits a workflow as a file would."""
        document = {"goal": "Prove it.", "kind": "proof", "prompt_version": "1", "steps": list(steps), **members}
        plan = parse_plan(read_document(json.dumps(document).encode(), "json"), newest_tools())
        return submit(plan, team=Team.objects.get(slug="default"), actor=ACTOR)

    def rest(self, workflow: Workflow, seconds: float = WAIT_SECONDS) -> Workflow:
        """Waits until nothing more will happen by itself."""
        return wait_for(lambda: self._at_rest(workflow.pk), seconds)

    def status(self, workflow: Workflow, *wanted: WorkflowStatus) -> Workflow:
        """Waits for a status."""
        return wait_for(lambda: Workflow.objects.filter(pk=workflow.pk, status__in=wanted).first(), WAIT_SECONDS)

    def step(self, workflow: Workflow, name: str) -> Step:
        """A step as it is now."""
        return Step.objects.get(workflow=workflow, name=name)

    def holder(self, workflow: Workflow, name: str) -> WorkerProcess:
        """The process that holds a step's lease now."""
        holder = self.step(workflow, name).lease_holder
        assert holder is not None
        return holder

    def cases(self, workflow: Workflow) -> list[Case]:
        """Every question that was ever asked about it."""
        return list(Case.objects.filter(workflow=workflow).select_related("step"))

    def decide(self, case: Case, kind: DecisionKind, **more: Any) -> Decision:
        """Decides as a person who saw the case as it is now."""
        person = User.objects.filter(is_superuser=True).first() or User.objects.create_superuser(str(uuid.uuid4())[:8])
        step = Step.objects.get(pk=case.step_id)
        decision = decide(
            case_id=case.pk, kind=kind, person=person, channel="command",
            **{"reason": "looked it up", "step_version": step.version, "arguments_hash": step.arguments_hash, **more},
        )  # fmt: skip
        assert isinstance(decision, Decision)
        return decision

    def _at_rest(self, pk: uuid.UUID) -> Workflow | None:
        return Workflow.objects.filter(pk=pk, status__in=AT_REST).first()


@pytest.fixture(scope="module")
def rig(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    database_addresses: Addresses,
    sandbox_process: SandboxProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Rig]:
    """The running system, without workers yet."""
    folder = tmp_path_factory.mktemp("rig")
    flush.flush(database_addresses.superuser)
    with django_db_blocker.unblock(), ExitStack() as stack:
        made = Rig(folder, sandbox_process, CrashPlan(folder), _environment(folder, sandbox_process))
        _hurry()
        stack.enter_context(beat(folder, made.env))
        yield made
        for worker in made.started:
            worker.end()
        connections.close_all()
    flush.flush(database_addresses.superuser)


def _environment(folder: Path, sandbox: SandboxProcess) -> dict[str, str]:
    """The shipped providers with short times, so that a test need not wait for a real provider's."""
    toml = re.sub(r"deadline_seconds = .*", f"deadline_seconds = {DEADLINE}", sandbox.providers_toml())
    providers = folder / "providers.toml"
    providers.write_text(re.sub(r"settle_seconds = .*", f"settle_seconds = {SETTLE}", toml))
    return {
        "CHECKPOINT_HTTP_PROVIDERS": str(providers),
        "CHECKPOINT_FILES_ROOT": str(folder / "files"),
        "CHECKPOINT_FLIGHT_WORD_SECONDS": "5",
        "CHECKPOINT_CRASH_PLAN": str(folder / "crash-plan"),
    }


def _hurry() -> None:
    """A policy with short waits."""
    newest = PolicyVersion.objects.latest("number")
    PolicyVersion.objects.create(
        number=newest.number + 1, sha256="", rules={**newest.rules, **HURRIED}, reason="tests", author="tests"
    )
