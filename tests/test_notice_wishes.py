"""A person's wishes and rights, as they are when a notice goes out."""

from __future__ import annotations

from datetime import datetime, time, timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from approvals.models import Notice, NoticeSettings, NoticeTimer
from approvals.notifying import notice_timers
from approvals.notifying.notice_rules import NoticeKind, NoticeState
from checkpoint import clock
from checkpoint.states import Decision as DecisionKind
from tests.journal_driver import answer
from tests.notice_driver import approver, asked, default_team, person, told
from tests.notice_receivers import MailServer
from tests.time_driver import MovableTime
from workers.notices import sender

pytestmark = pytest.mark.usefixtures("database")

HOUR = 3600.0


def test_who_wants_none_gets_none_and_the_notice_says_why(mail_server: MailServer) -> None:
    ada, adam, anna = approver("ada"), approver("adam"), approver("anna")
    NoticeSettings.objects.create(person=ada, email=False)
    NoticeSettings.objects.create(person=adam, muted=["asked"])
    User.objects.filter(pk=anna.pk).update(email="")
    asked()
    sender.run_round()
    assert {notice.detail for notice in Notice.objects.filter(state=NoticeState.SKIPPED)} == {
        "the person wants no e-mail",
        "the person wants no e-mail of the kind “asked”",
        "the account has no e-mail address",
    }
    assert mail_server.mails == []


def test_a_right_that_was_taken_away_counts_before_the_mail_goes_out(mail_server: MailServer) -> None:
    ada, adam, anna = approver("ada"), approver("adam"), approver("anna")
    asked()
    ada.groups.clear()
    default_team().members.remove(adam)
    User.objects.filter(pk=anna.pk).update(is_active=False)
    sender.run_round()
    assert set(told().values()) == {"skipped"}
    assert mail_server.mails == []


def test_a_question_that_was_answered_meanwhile_is_not_asked(mail_server: MailServer) -> None:
    approver("ada")
    answer(asked(), DecisionKind.RETRY)
    sender.run_round()
    assert told() == {"ada": "skipped"}


def test_quiet_hours_put_a_question_off_and_no_escalation(mail_server: MailServer, time_machine: MovableTime) -> None:
    ada, boss = approver("ada"), person("boss", groups=("Admin",))
    now = clock.now()
    for somebody in (ada, boss):
        NoticeSettings.objects.create(
            person=somebody, quiet_from=now.time(), quiet_until=_hours_later(now, 23), time_zone="UTC"
        )
    asked()
    sender.run_round()
    assert told() == {"ada": "waiting"}
    time_machine.pass_seconds(22 * HOUR)
    Notice.objects.filter(person=ada).update(state="skipped", settled_at=now)
    _escalate_now()
    sender.run_round()
    assert told(NoticeKind.ESCALATION) == {"boss": "delivered"}


def test_quiet_hours_end(mail_server: MailServer, time_machine: MovableTime) -> None:
    ada = approver("ada")
    now = clock.now()
    NoticeSettings.objects.create(person=ada, quiet_from=now.time(), quiet_until=_hours_later(now, 2))
    asked()
    sender.run_round()
    time_machine.pass_seconds(2 * HOUR)
    sender.run_round()
    assert told() == {"ada": "delivered"}


def test_without_a_mail_server_nothing_piles_up(settings: Settings) -> None:
    settings.MAILERS = {}
    approver("ada")
    asked()
    sender.run_round()
    assert told() == {"ada": "skipped"}


def _hours_later(now: datetime, hours: int) -> time:
    return (now + timedelta(hours=hours)).time()


def _escalate_now() -> None:
    NoticeTimer.objects.update(due_at=clock.now())
    notice_timers.fire()
