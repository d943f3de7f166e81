"""Senders that meet, die, come back late or hang: each notice arrives, and nothing else waits for it (S21)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from approvals.models import Delivery
from approvals.notifying import outbox
from approvals.notifying.notice_rules import NoticeKind
from approvals.notifying.outbox import Delivered, NotDelivered, Taken
from checkpoint.states import Decision as DecisionKind
from tests.journal_driver import JournalDriver, answer
from tests.notice_driver import approver, asked, channel, requested, sender_process, told
from tests.notice_receivers import MailServer, Receiver, free_port, mailers, silent_server
from tests.sandbox_driver import wait_for
from tests.time_driver import MovableTime
from tests.worker_driver import CrashPlan
from workers.notices import sender

pytestmark = pytest.mark.usefixtures("database")


class TestSendersThatDieOrMeet:
    def test_two_senders_at_once_deliver_each_notice_once(self, mail_server: MailServer, tmp_path: Path) -> None:
        people = [approver(f"ada{number}") for number in range(12)]
        asked()
        senders = [sender_process(tmp_path, mail_server.port) for _ in range(2)]
        assert [process.wait(60) for process in senders] == [0, 0], (tmp_path / "sender.log").read_text()
        assert [len(mail_server.to(somebody)) for somebody in people] == [1] * 12
        assert set(told().values()) == {"delivered"}

    def test_a_sender_killed_after_sending_sends_again_under_the_same_id(
        self, mail_server: MailServer, tmp_path: Path, time_machine: MovableTime
    ) -> None:
        approver("ada")
        asked()
        crash = CrashPlan(tmp_path)
        crash.set("notice/sent")
        killed = sender_process(tmp_path, mail_server.port, CHECKPOINT_CRASH_PLAN=str(crash.file))
        assert killed.wait(60) == -signal.SIGKILL, (tmp_path / "sender.log").read_text()
        assert told() == {"ada": "sending"}
        sender.run_round()
        assert len(mail_server.mails) == 1, "the lease still runs"
        time_machine.pass_seconds(outbox.LEASE.total_seconds())
        sender.run_round()
        assert told() == {"ada": "delivered"}
        first, second = mail_server.mails
        assert first["Message-ID"] == second["Message-ID"]
        assert [try_.delivered for try_ in Delivery.objects.all()] == [None, True]

    def test_a_sender_killed_before_sending_loses_nothing(
        self, mail_server: MailServer, tmp_path: Path, time_machine: MovableTime
    ) -> None:
        approver("ada")
        asked()
        with silent_server() as hanging:
            killed = sender_process(tmp_path, hanging.port)
            assert hanging.connected.wait(30)
            killed.kill()
            killed.wait(30)
        assert told() == {"ada": "sending"}
        time_machine.pass_seconds(outbox.LEASE.total_seconds())
        sender.run_round()
        assert told() == {"ada": "delivered"}
        assert len(mail_server.mails) == 1

    def test_a_sender_that_comes_back_late_undoes_nothing(self, time_machine: MovableTime, settings: Settings) -> None:
        settings.MAILERS = mailers(free_port())
        approver("ada")
        asked()
        late = _take()
        time_machine.pass_seconds(outbox.LEASE.total_seconds())
        newer = _take()
        outbox.record(late.delivery_id, NotDelivered("the connection broke", permanent=True))
        assert told() == {"ada": "sending"}
        outbox.record(newer.delivery_id, NotDelivered("nobody answered"))
        assert told() == {"ada": "waiting"}

    def test_that_it_arrived_counts_whoever_says_so(self, time_machine: MovableTime, settings: Settings) -> None:
        settings.MAILERS = mailers(free_port())
        approver("ada")
        asked()
        late = _take()
        time_machine.pass_seconds(outbox.LEASE.total_seconds())
        newer = _take()
        outbox.record(late.delivery_id, Delivered())
        assert told() == {"ada": "delivered"}
        outbox.record(newer.delivery_id, NotDelivered("nobody answered"))
        assert told() == {"ada": "delivered"}


class TestAServerThatHangs:
    def test_s21_delays_no_decision_and_no_turn_of_the_engine(self, settings: Settings) -> None:
        approver("ada")
        case = asked()
        with silent_server() as hanging:
            settings.MAILERS = mailers(hanging.port, seconds=30)
            sender.start_round()
            assert hanging.connected.wait(30)
            answer(case, DecisionKind.CONFIRM)
            workflow = requested()
            assert workflow.pk in {claim.workflow_id for claim in JournalDriver().turn()}
            assert told(NoticeKind.ASKED) == {"ada": "sending"}, "the server still hangs"
        sender.end()
        assert told(NoticeKind.ASKED) == {"ada": "waiting"}

    @pytest.mark.parametrize("drip", [b"", b"220-wait\r\n"], ids=["silent", "dripping"])
    def test_is_left_when_the_time_is_over_and_rests_for_the_round(self, settings: Settings, drip: bytes) -> None:
        for number in range(8):
            approver(f"ada{number}")
        asked()
        with silent_server(drip) as hanging:
            settings.MAILERS = mailers(hanging.port, seconds=0.5)
            sender.run_round()
        assert Delivery.objects.count() <= sender.SENDERS, "the others do not wait for it one by one"
        assert set(told().values()) == {"waiting"}

    def test_delays_no_other_channel(self, settings: Settings, receiver: Receiver) -> None:
        approver("ada")
        channel(receiver, name="chat")
        asked()
        with silent_server() as hanging:
            settings.MAILERS = mailers(hanging.port, seconds=30)
            sender.start_round()
            wait_for(lambda: receiver.received)
            wait_for(lambda: told()["chat"] == "delivered")
            assert told()["ada"] == "sending"
        sender.end()


def _take() -> Taken:
    taken = outbox.take()
    assert isinstance(taken, Taken)
    return taken
