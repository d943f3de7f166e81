"""Kills and pauses real workers around the COMMIT of `sql.execute`; the foreign table is the judge."""

from __future__ import annotations

import json
import os
import signal

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Evidence, Team, Workflow
from checkpoint.planning.documents import read_document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit
from tests.rig import ACTOR, Rig
from tests.sandbox_driver import wait_for
from tests.sql_driver import Shop, arguments

pytestmark = pytest.mark.slow

POINTS = ("sql.execute/before_commit", "sql.execute/committed")


@pytest.fixture(scope="module")
def running(rig: Rig, shop_database: Shop) -> Rig:
    listed = shop_database.environment(rig.folder, deadline_seconds=3.0, settle_seconds=0.2)
    rig.worker(processes=2, CHECKPOINT_LEASE_SECONDS="1.5", **listed)
    return rig


def cut(running: Rig, point: str, how: str) -> Workflow:
    running.started[0].wait_whole()
    running.crash.set(point, "take_chair", how)
    given = arguments().model_dump(exclude_none=True)
    workflow = running.submit({"name": "take_chair", "tool": "sql.execute", "arguments": given})
    wait_for(running.crash.happened, 20)
    return workflow


def assert_done_once(running: Rig, workflow: Workflow, shop: Shop) -> None:
    assert running.rest(workflow).status == WorkflowStatus.COMPLETED
    assert running.cases(workflow) == []
    assert shop.pieces() == 9


def test_the_example_keeps_stock_and_order_together(running: Rig, shop: Shop) -> None:
    text = (BASE_DIR / "examples/tools/stock.yaml").read_bytes()
    plan = parse_plan(read_document(text, "yaml"), newest_tools())
    workflow = running.rest(submit(plan, team=Team.objects.get(slug="default"), actor=ACTOR))
    assert workflow.status == WorkflowStatus.COMPLETED
    assert shop.pieces() == 8
    ((order, article, total),) = shop.sql("SELECT id, article, total::text FROM orders")
    assert (article, total) == ("chair", "398.00")
    receipt = running.step(workflow, "take_and_order").receipt
    assert receipt is not None
    (returned,) = json.loads(receipt.facts)["returned"]
    assert returned == {"id": order, "pieces_left": 8}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_worker_leaves_one_effect_and_no_question(running: Rig, shop: Shop, point: str) -> None:
    assert_done_once(running, cut(running, point, "KILL"), shop)


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_is_paused_and_goes_on_changes_nothing_more(running: Rig, shop: Shop, point: str) -> None:
    workflow = cut(running, point, "STOP")
    paused = running.holder(workflow, "take_chair").pid
    assert_done_once(running, workflow, shop)
    os.kill(paused, signal.SIGCONT)
    wait_for(lambda: Evidence.objects.filter(step__workflow=workflow, kind="late_receipt").exists())
    assert shop.pieces() == 9
