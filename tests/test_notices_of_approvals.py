"""Requests for approval are told of like questions: to who may answer them by the policy, once, and in time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User

from approvals.models import NoticeTimer
from approvals.notifying import notice_timers
from approvals.notifying.notice_rules import NoticeKind
from checkpoint.models import Approval, Workflow
from checkpoint.states import Decision as DecisionKind
from tests import approval_driver
from tests.approval_driver import answer, pending
from tests.console_driver import signed_in
from tests.journal_driver import KEYED, JournalDriver
from tests.notice_driver import approver, default_team, person, requested, told
from tests.notice_receivers import MailServer
from tests.time_driver import MovableTime
from workers.notices import sender

pytestmark = pytest.mark.usefixtures("database")


def asked(by: User | None = None, **rule: object) -> Approval:
    """A request of the engine's before a step may start."""
    approval_driver.ask(**rule)
    workflow = requested(by, contract=KEYED)
    assert JournalDriver().turn() == []
    return pending(workflow)


def operator(name: str) -> User:
    """Somebody who may submit, and may decide too."""
    return person(name, groups=("Operator", "Approver"))


def test_is_told_to_who_may_answer_by_the_policy_and_to_nobody_else() -> None:
    rita = operator("rita")
    approver("ada")
    Group.objects.create(name="Finance")
    person("fin", groups=("Approver", "Finance"))
    asked(rita, groups=["Finance"])
    assert told() == {"fin": "waiting"}


def test_s39_who_asks_is_told_only_where_self_approval_counts() -> None:
    approver("ada")
    rita = operator("rita")
    asked(rita)
    assert told() == {"ada": "waiting"}
    asked(rita, self_approval=True)
    assert set(told(NoticeKind.ASKED)) == {"ada", "rita"}


def test_a_plan_is_asked_for_once(mail_server: MailServer) -> None:
    ada = approver("ada")
    asked(scope="plan")
    sender.run_round()
    (mail,) = mail_server.to(ada)
    assert mail["Subject"] == "[Checkpoint] Approval wanted"
    approval = Approval.objects.get(part_of=None)
    link = f"/approvals/{approval.pk}/"
    assert f"http://127.0.0.1:8000{link}" in mail.as_string().replace("=\n", "")
    assert signed_in(ada).get(link).status_code == 200
    assert "the rest of the plan, by one person" in mail.as_string().replace("=\n", "")


def test_the_answer_that_settles_it_is_told_to_who_asked(mail_server: MailServer) -> None:
    rita, ada, adam = operator("rita"), approver("ada"), approver("adam")
    approval = asked(rita, needed=2)
    answer(approval, ada)
    assert told(NoticeKind.DECIDED) == {}, "one of two settles nothing"
    answer(approval, adam, reason="within budget")
    assert told(NoticeKind.DECIDED) == {"rita": "waiting"}
    sender.run_round()
    (mail,) = mail_server.to(rita)
    assert mail["Subject"] == "[Checkpoint] Decided: approve (request for approval)"
    assert "within budget" in mail.as_string()


def test_who_has_answered_already_is_not_asked_again(mail_server: MailServer, time_machine: MovableTime) -> None:
    ada = approver("ada")
    approver("adam")
    approval = asked(needed=2)
    answer(approval, ada)
    sender.run_round()
    assert told(NoticeKind.ASKED) == {"ada": "skipped", "adam": "delivered"}
    time_machine.pass_seconds(5 * 3600)
    notice_timers.fire()
    assert told(NoticeKind.REMINDER) == {"adam": "waiting"}


def test_reminder_and_escalation_come_before_its_time_is_over() -> None:
    approver("ada")
    approval = asked(expires_seconds=7200)
    due = {timer.kind: timer.due_at - approval.requested_at for timer in NoticeTimer.objects.all()}
    assert due == {"reminder": timedelta(hours=1), "escalation": timedelta(hours=1.5)}


def test_nobody_is_reminded_of_what_was_answered_or_ran_out(time_machine: MovableTime) -> None:
    ada = approver("ada")
    person("boss", groups=("Admin",))
    answer(asked(), ada)
    time_machine.pass_seconds(100 * 3600)
    assert notice_timers.fire() == 2
    assert told(NoticeKind.REMINDER) == told(NoticeKind.ESCALATION) == {}


def test_s21_its_time_runs_out_whether_or_not_a_mail_server_answers(time_machine: MovableTime) -> None:
    approver("ada")
    approval = asked(expires_seconds=7200)
    time_machine.pass_seconds(2 * 3600 + 1)
    JournalDriver().turn()
    approval.refresh_from_db()
    assert (approval.status, told()) == ("expired", {"ada": "waiting"})
    sender.run_round()
    assert told() == {"ada": "skipped"}
    assert Workflow.objects.get().status == "abandoned"


def test_a_rejection_is_told_with_the_end() -> None:
    rita, ada = operator("rita"), approver("ada")
    answer(asked(rita), ada, DecisionKind.REJECT)
    assert told(NoticeKind.DECIDED) == told(NoticeKind.OUTCOME) == {"rita": "waiting"}
    assert default_team().members.filter(pk=rita.pk).exists()
