"""The shipped examples from the command line, with a real worker: to their end, or to the one question."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Case, Team, Workflow
from checkpoint.short_ids import short
from checkpoint.states import CaseReason, CaseStatus, WorkflowStatus
from tests.rig import Rig


def submit(rig: Rig, name: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """Submits an example against the test's sandbox, waits, and returns the exit code and the answer."""
    text = (BASE_DIR / "examples" / name).read_text(encoding="utf-8")
    file = folder / name
    file.write_text(text.replace("http://127.0.0.1:7180", rig.sandbox.url), encoding="utf-8")
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command("submit", str(file), "--wait", "60", "--json", stdout=out, stderr=err)
    except SystemExit as ended:
        code = int(str(ended.code))
    return code, json.loads(out.getvalue())


@pytest.mark.parametrize("name", ["invoicing.yaml", "publishing.yaml"])
def test_an_example_runs_to_its_end(rig: Rig, tmp_path: Path, name: str) -> None:
    _ensure_worker(rig)
    code, answer = submit(rig, name, tmp_path)
    assert (code, answer["status"]) == (0, "completed")
    told = io.StringIO()
    call_command("explain", answer["id"], json=True, stdout=told)
    steps = json.loads(told.getvalue())["steps"]
    assert {(step["status"], step["outlook"]["words"]) for step in steps} == {("verified", "")}
    assert all(step["evidence"] for step in steps)


def test_the_refund_stops_with_one_question_and_goes_on_when_it_is_answered(rig: Rig, tmp_path: Path) -> None:
    _ensure_worker(rig)
    code, answer = submit(rig, "refund.yaml", tmp_path)
    assert (code, answer["status"]) == (3, "needs_review")
    [case] = Case.objects.filter(workflow=answer["id"])
    assert case.reason == CaseReason.OUTCOME_UNKNOWN
    told = io.StringIO()
    call_command("explain", short(case.workflow_id), stdout=told)
    assert "not known: whether attempt 1 took effect" in told.getvalue()
    assert f"case …{short(case.pk)}" in told.getvalue()
    call_command("decide", short(case.pk), "confirm", user=_approver(), reason="The charge is in the bank's list.")
    workflow = rig.status(Workflow.objects.get(pk=answer["id"]), WorkflowStatus.COMPLETED)
    assert not Case.objects.filter(workflow=workflow, status=CaseStatus.OPEN).exists()
    assert rig.sandbox.count("charge", key=case.step.idempotency_key) == 1


def _ensure_worker(rig: Rig) -> None:
    if not rig.started:
        rig.worker()


def _approver() -> str:
    user = User.objects.create_user("ada")
    user.groups.add(Group.objects.get(name="Approver"))
    Team.objects.get(slug="default").members.add(user)
    return user.username
