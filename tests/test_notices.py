"""Who is told what: notices are written with the change that they tell of, once for each event, person and kind."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection, transaction

from approvals.decisions import decide
from approvals.models import Notice, NoticeTimer
from approvals.notifying import notice_timers, notices
from approvals.notifying.notice_rules import NoticeKind, NoticeState
from checkpoint import clock
from checkpoint.errors import Conflict, StaleView
from checkpoint.models import Case
from checkpoint.outcomes import OutcomeUnknown
from checkpoint.rows.announcements import Announcement, announced
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import WorkflowStatus
from tests import factories
from tests.journal_driver import KEYED, JournalDriver, answer
from tests.notice_driver import approver, asked, channel, completed, default_team, person, requested, told
from tests.notice_receivers import Receiver
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

HOUR = 3600.0


class TestAQuestion:
    def test_s39_is_told_to_everybody_who_may_answer_it_and_to_nobody_else(self) -> None:
        approver("ada")
        person("olive", groups=("Operator",))
        direct = person("dirk")
        direct.user_permissions.add(_permission("decide_case"))
        User.objects.create_superuser("root", email="root@example.com")
        for group in ("Auditor", "Admin", "Agent"):
            person(group.lower(), groups=(group,))
        person("lena", groups=("Approver",), team=factories.team("Legal"))
        gone = approver("gone")
        User.objects.filter(pk=gone.pk).update(is_active=False)
        asked()
        assert told() == dict.fromkeys(("ada", "olive", "dirk"), "waiting")

    def test_is_told_to_a_superuser_who_belongs_to_the_team(self) -> None:
        default_team().members.add(User.objects.create_superuser("root"))
        asked()
        assert told() == {"root": "waiting"}

    def test_is_told_to_the_channels_of_the_team_and_of_all_teams(self, receiver: Receiver) -> None:
        channel(receiver, name="everybody")
        channel(receiver, name="ours", team=default_team())
        channel(receiver, name="theirs", team=factories.team("Legal"))
        channel(receiver, name="off", enabled=False)
        channel(receiver, name="other kinds", kinds=["decided"])
        asked()
        assert told() == {"everybody": "waiting", "ours": "waiting"}

    def test_is_written_once_however_often_it_is_announced(self) -> None:
        approver("ada")
        case = asked()
        with transaction.atomic():
            notices.hear(Announcement([case.pk], [], case.opened_at))
        assert Notice.objects.count() == 1

    def test_is_opened_with_its_notices_or_not_at_all(self) -> None:
        approver("ada")
        requested()
        worker = JournalDriver()
        claim = worker.claim()

        def break_off(**kwargs: object) -> None:
            assert Notice.objects.count() == 1, "the notices are there, inside the transaction"
            raise ZeroDivisionError

        announced.connect(break_off)
        try:
            with pytest.raises(ZeroDivisionError):
                worker.report(claim, OutcomeUnknown("the connection broke"))
        finally:
            announced.disconnect(break_off)
        assert not Case.objects.exists()
        assert not Notice.objects.exists()
        assert not NoticeTimer.objects.exists()


class TestADecision:
    def test_s39_is_told_once_to_who_submitted_the_workflow_and_to_nobody_else(self) -> None:
        approver("ada")
        approver("adam")
        case = asked(_requester())
        answer(case, DecisionKind.RETRY)
        assert told(NoticeKind.DECIDED) == {"rita": "waiting"}

    def test_s19_by_several_people_at_once_is_told_once(self) -> None:
        case, together = asked(_requester()), threading.Barrier(4)
        people = [approver(f"ada{number}") for number in range(4)]

        def press(somebody: User) -> None:
            together.wait(timeout=30)
            with closing(connection), suppress(Conflict):
                decide(
                    case_id=case.pk, kind=DecisionKind.RETRY, person=somebody, channel="console", reason="I looked.",
                    step_version=case.step.version, arguments_hash=case.step.arguments_hash,
                )  # fmt: skip

        threads = [threading.Thread(target=press, args=(somebody,)) for somebody in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Case.objects.get().status == "decided"
        assert told(NoticeKind.DECIDED) == {"rita": "waiting"}

    def test_that_is_repeated_is_not_told_again(self) -> None:
        case = asked(_requester())
        decision = answer(case, DecisionKind.CONFIRM)
        assert decision.person is not None
        assert answer(case, DecisionKind.CONFIRM) == decision
        assert told(NoticeKind.DECIDED) == {"rita": "waiting"}

    def test_that_is_refused_is_told_to_nobody(self) -> None:
        case = asked(_requester())
        with pytest.raises(StaleView):
            decide(
                case_id=case.pk, kind=DecisionKind.RETRY, person=User.objects.create_superuser("root"),
                channel="command", reason="because", step_version=99, arguments_hash="other",
            )  # fmt: skip
        assert told(NoticeKind.DECIDED) == {}

    def test_is_not_told_to_who_took_it(self) -> None:
        root = User.objects.create_superuser("root", email="root@example.com")
        answer(asked(root), DecisionKind.RETRY)
        assert told(NoticeKind.DECIDED) == {}


class TestAnEnd:
    def test_s39_is_told_to_who_submitted_the_workflow_once_it_is_verified(self) -> None:
        approver("ada")
        workflow = completed(_requester())
        assert workflow.status == WorkflowStatus.COMPLETED
        assert told() == {"rita": "waiting"}
        assert Notice.objects.get().kind == NoticeKind.OUTCOME

    def test_is_not_told_before_every_step_is_verified(self) -> None:
        requested(_requester(), contract=KEYED)
        JournalDriver().claim()
        assert told() == {}

    def test_by_a_person_is_told_too(self) -> None:
        answer(asked(_requester()), DecisionKind.ABANDON)
        assert told(NoticeKind.OUTCOME) == {"rita": "waiting"}

    def test_is_told_to_nobody_where_nobody_can_be_reached(self) -> None:
        completed()
        completed(person("robot", groups=("Operator",), address=False))
        assert told() == {}


class TestTimers:
    def test_s39_a_reminder_and_then_an_escalation_go_out_once_each(self, time_machine: MovableTime) -> None:
        approver("ada")
        person("boss", groups=("Admin",))
        asked()
        Notice.objects.update(state=NoticeState.DELIVERED, settled_at="2026-01-01T00:00Z")
        assert notice_timers.fire() == 0
        time_machine.pass_seconds(5 * HOUR)
        assert notice_timers.fire() == 1
        assert (told(NoticeKind.REMINDER), told(NoticeKind.ESCALATION)) == ({"ada": "waiting"}, {})
        time_machine.pass_seconds(20 * HOUR)
        assert notice_timers.fire() == 1
        assert told(NoticeKind.ESCALATION) == {"boss": "waiting"}
        assert notice_timers.fire() == 0
        assert Notice.objects.count() == 3

    def test_an_answered_question_reminds_nobody(self, time_machine: MovableTime) -> None:
        approver("ada")
        answer(asked(), DecisionKind.RETRY)
        time_machine.pass_seconds(100 * HOUR)
        assert notice_timers.fire() == 2
        assert told(NoticeKind.REMINDER) == told(NoticeKind.ESCALATION) == {}

    def test_who_has_not_got_the_question_yet_is_reminded_so_much_later(self, time_machine: MovableTime) -> None:
        approver("ada")
        asked()
        put_off = Notice.objects.get().created_at + timedelta(hours=10)
        Notice.objects.update(due_at=put_off)
        time_machine.pass_seconds(5 * HOUR)
        notice_timers.fire()
        assert Notice.objects.get(kind=NoticeKind.REMINDER).due_at == put_off + timedelta(hours=4)

    def test_a_question_that_nobody_may_answer_is_escalated_at_once(self) -> None:
        person("boss", groups=("Admin",))
        asked()
        assert notice_timers.fire() == 1
        assert told() == {"boss": "waiting"}

    def test_a_timer_moved_by_somebody_goes_off_then(self, time_machine: MovableTime) -> None:
        approver("ada")
        asked()
        NoticeTimer.objects.filter(kind=NoticeKind.REMINDER).update(due_at=clock.now() + timedelta(hours=50))
        time_machine.pass_seconds(30 * HOUR)
        assert notice_timers.fire() == 1
        assert told(NoticeKind.REMINDER) == {}
        time_machine.pass_seconds(30 * HOUR)
        assert notice_timers.fire() == 1
        assert told(NoticeKind.REMINDER) == {"ada": "waiting"}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM approvals_notice",
        "UPDATE approvals_notice SET kind = 'outcome'",
        "UPDATE approvals_notice SET recipient = 'person/1'",
        "UPDATE approvals_notice SET attempt_count = -1",
        "DELETE FROM approvals_delivery",
    ],
)
def test_the_record_of_notices_is_kept(statement: str) -> None:
    approver("ada")
    asked()
    with pytest.raises(DatabaseError, match=r"law|permission denied"), connection.cursor() as cursor:
        cursor.execute(statement)


def test_an_erased_account_takes_no_notice_with_it() -> None:
    ada, adam = approver("ada"), approver("adam")
    asked()
    recipients = {f"person/{ada.pk}", f"person/{adam.pk}"}
    ada.delete()
    adam.delete()
    assert {notice.recipient for notice in Notice.objects.filter(person=None)} == recipients


def _requester() -> User:
    return person("rita", groups=("Agent",))


def _permission(codename: str) -> Permission:
    return Permission.objects.get(codename=codename)
