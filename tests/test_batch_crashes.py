"""Kills real workers between the failure of one step of a batch and what follows; the plan goes on exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from approvals.rules.policy_documents import read_policy
from checkpoint.config.environment import BASE_DIR
from checkpoint.models import AuditEntry, Waiver, Workflow
from checkpoint.planning.documents import read_document
from checkpoint.states import WorkflowStatus
from tests.case_driver import put_in_force
from tests.rig import HURRIED, Rig
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.slow

EXAMPLES = BASE_DIR / "examples"
PAGES, TICKETS = ("put_up_english", "put_up_german"), ("check_english", "check_german")
# The failure is on record; the decision about it is made but not committed; so that about what lacks its result.
POINTS = (
    ("after_commit/record_execute", "put_up_french"),
    ("waive", "put_up_french"),
    ("waive", "check_french"),
)


@pytest.fixture(scope="module")
def running(rig: Rig) -> Rig:
    _, rules = read_policy((EXAMPLES / "policies" / "batches.yaml").read_text(encoding="utf-8"))
    put_in_force({"defaults": HURRIED, **rules})
    rig.worker(processes=2)
    return rig


@pytest.fixture(autouse=True)
def calm(running: Rig) -> Iterator[None]:
    running.started[0].wait_whole()
    yield
    running.crash.clear()


def announcement(rig: Rig) -> dict[str, Any]:
    """The example, at the sandbox's present address."""
    text = (EXAMPLES / "batches" / "announcement.yaml").read_text(encoding="utf-8")
    return dict(read_document(text.replace("http://127.0.0.1:7180", rig.sandbox.url).encode(), "yaml").value)


@pytest.mark.parametrize(("point", "step"), POINTS)
def test_killed_around_a_waiver_the_plan_goes_on_exactly_once(running: Rig, point: str, step: str) -> None:
    running.crash.set(point, step)
    document = announcement(running)
    workflow = running.submit(*document.pop("steps"), **document)
    wait_for(running.crash.happened, 20)
    assert_done_in_part(running, running.rest(workflow))


def assert_done_in_part(rig: Rig, workflow: Workflow) -> None:
    assert (workflow.status, rig.cases(workflow)) == (WorkflowStatus.COMPLETED, [])
    made = {step.name: step for step in workflow.steps.all()}
    for kind, names in (("page", PAGES), ("ticket", TICKETS)):
        assert [rig.sandbox.count(kind, key=made[name].idempotency_key) for name in names] == [1, 1]
    waived = Waiver.objects.filter(step__workflow=workflow).order_by("waived_at")
    assert [(waiver.step.name, waiver.cause) for waiver in waived] == [
        ("put_up_french", "failed"), ("check_french", "lacks_result"),
    ]  # fmt: skip
    assert AuditEntry.objects.filter(stream=workflow.pk, verb="waive").count() == 2
