"""Notices in the running system: real workers and scheduler, a real mail server, and one that hangs (S20, S21)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.db import connections
from django.test import Client

from approvals.models import Notice
from approvals.notifying.notice_rules import NoticeState
from checkpoint.config.embedded_postgres import Server
from checkpoint.models import Workflow
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import WorkflowStatus
from tests.effects import KEYED_LOOKED_UP, OPAQUE
from tests.notice_driver import approver
from tests.notice_receivers import MailServer, free_port, silent_server
from tests.rig import Rig
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.slow

FIFTY = 50


@pytest.fixture
def taking() -> Iterator[MailServer]:
    """A mail server for other processes."""
    server = MailServer(free_port())
    controller = Controller(server, hostname="127.0.0.1", port=server.port)
    controller.start()
    yield server
    controller.stop()


def ask(rig: Rig) -> Workflow:
    """A workflow that stops with a question: the provider works and its answer gets lost."""
    rig.sandbox.fault("drop_after_work", OPAQUE.path)
    return rig.status(rig.submit(OPAQUE.step(rig.sandbox)), WorkflowStatus.NEEDS_REVIEW)


def mail(port: int) -> dict[str, str]:
    return {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(port), "EMAIL_TIMEOUT": "15"}


@pytest.mark.timeout(300)
def test_s20_fifty_questions_and_the_links_to_them_outlast_a_restart_of_everything(
    rig: Rig, taking: MailServer, database_server: Server | None
) -> None:
    if database_server is None:
        pytest.skip("the server is not ours to restart")
    ada = approver("ada")
    worker = rig.worker(processes=1, **mail(taking.port))
    rig.sandbox.fault("drop_after_work", OPAQUE.path, times=None)
    workflows = [rig.submit(OPAQUE.step(rig.sandbox)) for _ in range(FIFTY)]
    wait_for(lambda: len(taking.to(ada)) == FIFTY, 60)
    rig.sandbox.clear()
    worker.kill()
    database_server.stop()
    database_server.start()
    connections.close_all()
    rig.worker(processes=1, **mail(taking.port))
    browser = Client()
    browser.force_login(ada)
    links = {re.search(r"/cases/[0-9a-f-]{36}/", sent.as_string()).group() for sent in taking.mails}  # type: ignore[union-attr]
    assert len(links) == FIFTY
    assert all("Did it happen?" in browser.get(link).text for link in links)
    for workflow in workflows:
        (case,) = rig.cases(workflow)
        rig.decide(case, DecisionKind.CONFIRM)
    for workflow in workflows:
        rig.status(workflow, WorkflowStatus.COMPLETED)
    assert all("answered: confirm" in browser.get(link).text for link in links)
    assert len(taking.mails) == FIFTY


def test_s21_a_mail_server_that_hangs_holds_up_no_workflow_even_of_the_only_process(rig: Rig) -> None:
    for started in rig.started:
        started.end()
    approver("adam")
    with silent_server() as hanging:
        rig.worker(processes=1, **mail(hanging.port))
        (case,) = rig.cases(ask(rig))
        assert hanging.connected.wait(30)
        done = rig.rest(rig.submit(KEYED_LOOKED_UP.step(rig.sandbox)), 10)
        assert done.status == WorkflowStatus.COMPLETED
        rig.decide(case, DecisionKind.CONFIRM)
        rig.status(case.workflow, WorkflowStatus.COMPLETED)
        assert states(case)["adam"] == NoticeState.SENDING, "the server still hangs"


def states(case: Any) -> dict[str, str]:
    """State of the case's notices by person."""
    return dict(Notice.objects.filter(case=case).values_list("person__username", "state"))
