"""`email.send` in the running system: workers, a mail server that loses its replies, and the folder that tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Team, Workflow
from checkpoint.planning.documents import read_document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import CaseReason, StepStatus, WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit
from tests.mail_servers import PASSWORD, MailServer, SentFolder, mail_server, sent_folder
from tests.rig import ACTOR, Rig

pytestmark = pytest.mark.slow

PAGE = BASE_DIR / "docs" / "tools" / "email-send.md"


@pytest.fixture(scope="module")
def folder() -> Iterator[SentFolder]:
    with sent_folder() as running:
        yield running


@pytest.fixture(scope="module")
def running(rig: Rig, folder: SentFolder) -> Iterator[MailServer]:
    """Two accounts on one server: `office` can be asked, `blind` cannot."""
    with mail_server() as server:
        server.kept_in = folder
        times = {"settle_seconds": 0.2, "deadline_seconds": 2.0}
        entries = [server.entry(sent_folder=folder.entry(), **times), server.entry(**{**times, "name": "blind"})]
        file = rig.folder / "accounts.toml"
        _write(file, entries)
        rig.worker(CHECKPOINT_MAIL_ACCOUNTS=str(file), CHECKPOINT_SECRET_MAIL_PASSWORD=PASSWORD)
        yield server


@pytest.fixture(autouse=True)
def _well(running: MailServer) -> None:
    running.answers.clear()
    running.taken.clear()


def _write(file: Path, entries: list[dict[str, Any]]) -> None:
    lines = []
    for entry in entries:
        lines.append("[[account]]")
        lines += [f"{name} = {value!r}" for name, value in entry.items() if not isinstance(value, dict)]
        for name, value in entry.items():
            if isinstance(value, dict):
                lines += [f"[account.{name}]", *(f"{inner} = {one!r}" for inner, one in value.items())]
    file.write_text("\n".join(lines))


def from_the_page(account: str) -> Workflow:
    """The page's example, sent from this account."""
    found = re.search(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    text = found[1].replace("account: office", f"account: {account}")
    plan = parse_plan(read_document(text.encode(), "yaml"), newest_tools())
    return submit(plan, team=Team.objects.get(slug="default"), actor=ACTOR)


def test_a_message_whose_reply_was_lost_is_found_in_the_sent_folder_and_nobody_is_asked(
    rig: Rig, running: MailServer
) -> None:
    running.answers["."] = None
    workflow = rig.rest(from_the_page("office"))
    assert (workflow.status, rig.cases(workflow)) == (WorkflowStatus.COMPLETED, [])
    step = rig.step(workflow, "remind")
    assert running.mail()["Message-ID"] == f"<{step.operation_id}>" == f"<{step.idempotency_key}@example.com>"


def test_without_a_lookup_a_lost_reply_is_one_question_and_the_message_is_not_sent_again(
    rig: Rig, running: MailServer
) -> None:
    running.answers["."] = None
    workflow = rig.rest(from_the_page("blind"))
    assert workflow.status == WorkflowStatus.NEEDS_REVIEW
    (case,) = rig.cases(workflow)
    assert case.reason == CaseReason.OUTCOME_UNKNOWN
    assert len(running.taken) == 1


def test_killed_after_the_reply_it_is_committed_by_itself_though_nobody_can_be_asked(
    rig: Rig, running: MailServer
) -> None:
    rig.started[0].wait_whole()
    rig.crash.set("call/answered", "remind")
    workflow = rig.rest(from_the_page("blind"))
    assert rig.crash.happened()
    step = rig.step(workflow, "remind")
    assert step.receipt is not None
    assert (workflow.status, rig.cases(workflow), len(running.taken)) == (WorkflowStatus.COMPLETED, [], 1)
    assert (step.receipt.kind, step.receipt.facts_value["queue_id"]) == ("flight_record", "4BFQ7x2z1")


def test_killed_before_the_message_had_ended_it_is_sent_again_once_the_folder_has_not_got_it(
    rig: Rig, running: MailServer
) -> None:
    rig.crash.set("email.send/handed_over")
    workflow = rig.rest(from_the_page("office"))
    assert rig.crash.happened()
    assert (workflow.status, rig.cases(workflow)) == (WorkflowStatus.COMPLETED, [])
    assert rig.step(workflow, "remind").status == StepStatus.VERIFIED
    assert len(running.taken) == 1
