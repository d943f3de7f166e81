"""A worker killed right after it published: nothing is published again, and one question is asked."""

from __future__ import annotations

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Team, Workflow
from checkpoint.planning.documents import read_document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import CaseReason, Decision, WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit
from tests.broker_driver import PASSWORD, STREAM, Valkey
from tests.rig import ACTOR, Rig
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running(rig: Rig, valkey_server: Valkey) -> Rig:
    listed = rig.folder / "destinations.toml"
    listed.write_text(
        f'[[destination]]\nname = "orders"\nkind = "redis"\nurl = "redis://127.0.0.1:{valkey_server.port}/0"\n'
        f'password = "BROKER"\nstream = "{STREAM}"\ndeadline_seconds = 2.0\n'
    )
    rig.worker(CHECKPOINT_OUTBOX_DESTINATIONS=str(listed), CHECKPOINT_SECRET_BROKER=PASSWORD)
    return rig


def submitted() -> Workflow:
    text = (BASE_DIR / "examples/tools/publish.yaml").read_bytes()
    plan = parse_plan(read_document(text, "yaml"), newest_tools())
    return submit(plan, team=Team.objects.get(slug="default"), actor=ACTOR)


def test_the_example_publishes_one_event(running: Rig, valkey: Valkey) -> None:
    workflow = running.rest(submitted())
    assert workflow.status == WorkflowStatus.COMPLETED
    ((entry, fields),) = valkey.entries()
    step = running.step(workflow, "tell_shipping")
    assert (step.operation_id, step.idempotency_key) == (entry, fields["id"])


def test_what_may_have_been_published_is_never_published_again_and_becomes_one_question(
    running: Rig, valkey: Valkey
) -> None:
    running.crash.set("outbox.publish/published", "tell_shipping")
    workflow = submitted()
    wait_for(running.crash.happened, 60)
    assert running.rest(workflow).status == WorkflowStatus.NEEDS_REVIEW
    (case,) = running.cases(workflow)
    assert case.reason == CaseReason.OUTCOME_UNKNOWN
    running.decide(case, Decision.CONFIRM)
    assert running.rest(workflow).status == WorkflowStatus.COMPLETED
    assert len(valkey.entries()) == 1
