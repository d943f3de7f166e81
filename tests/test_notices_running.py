"""Notices in the running system: real workers and scheduler, a real mail server, and one that hangs (S20, S21)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from django.test import Client

from approvals.models import Notice
from approvals.notice_rules import NoticeState
from checkpoint.models import Workflow
from checkpoint.states import CaseStatus, WorkflowStatus
from checkpoint.states import Decision as DecisionKind
from tests.effects import KEYED_LOOKED_UP, OPAQUE
from tests.notice_driver import approver
from tests.notice_receivers import MailServer, free_port, silent_server
from tests.rig import Rig
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.slow


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


def test_a_question_becomes_a_mail_whose_link_works_after_everything_restarted(rig: Rig, taking: MailServer) -> None:
    ada = approver("ada")
    worker = rig.worker(processes=1, **mail(taking.port))
    (case,) = rig.cases(ask(rig))
    (sent,) = wait_for(lambda: taking.to(ada), 30)
    worker.kill()
    rig.worker(processes=1, **mail(taking.port))
    assert rig.cases(case.workflow)[0].status == CaseStatus.OPEN
    browser = Client()
    browser.force_login(ada)
    link = f"/cases/{case.pk}/"
    assert link in str(sent)
    assert "Did it happen?" in browser.get(link).text
    decision = rig.decide(case, DecisionKind.CONFIRM)
    rig.status(case.workflow, WorkflowStatus.COMPLETED)
    assert f"<bdi>{decision.person_name}</bdi> answered: confirm" in browser.get(link).text
    assert len(taking.mails) == 1


def test_a_mail_server_that_hangs_holds_up_no_workflow_even_of_the_only_process(rig: Rig) -> None:
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
