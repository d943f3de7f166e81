"""What a mail says, to whom it goes, and when it does not: over a real SMTP server."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from approvals.models import Delivery, Notice
from approvals.notifying.redelivery import redeliver
from checkpoint.states import Decision as DecisionKind
from tests.factories import PASSWORD
from tests.journal_driver import answer
from tests.notice_driver import approver, asked, completed, person, told
from tests.notice_receivers import MailServer
from tests.time_driver import MovableTime
from workers.notices import sender

pytestmark = pytest.mark.usefixtures("database")

HOUR = 3600.0


def links(mail: Any) -> set[str]:
    """Every address in a mail, in either form."""
    return set(re.findall(r"https?://[^\s\"<>]+", "".join(part.get_content() for part in mail.iter_parts())))


def plain(mail: Any) -> str:
    """The text of a mail that shows no HTML."""
    return str(next(iter(mail.iter_parts())).get_content())


class TestMail:
    def test_a_question_arrives_with_one_link_that_leads_to_the_case(self, mail_server: MailServer) -> None:
        ada = approver("ada")
        case = asked()
        sender.run_round()
        (mail,) = mail_server.to(ada)
        assert told() == {"ada": "delivered"}
        assert mail["Subject"] == "[Checkpoint] A question waits: Did it happen?"
        assert links(mail) == {f"http://127.0.0.1:8000/cases/{case.pk}/", "http://127.0.0.1:8000/notices/settings/"}
        assert mail["Auto-Submitted"] == "auto-generated"
        (delivery,) = Delivery.objects.all()
        assert (delivery.number, delivery.delivered) == (1, True)

    def test_the_requester_is_told_of_the_answer_and_of_the_end(self, mail_server: MailServer) -> None:
        rita = person("rita", groups=("Agent",))
        answer(asked(rita), DecisionKind.ABANDON, reason="the customer cancelled")
        completed(rita)
        sender.run_round()
        subjects = sorted(re.sub("….*", "", mail["Subject"]) for mail in mail_server.to(rita))
        assert subjects == [
            "[Checkpoint] Abandoned: workflow ",
            "[Checkpoint] Completed: workflow ",
            "[Checkpoint] Decided: abandon (Did it happen?)",
        ]
        decided = next(mail for mail in mail_server.mails if "Decided" in mail["Subject"])
        assert "> the customer cancelled" in plain(decided)

    def test_letters_about_one_case_belong_together_and_each_has_an_id_of_its_own(
        self, mail_server: MailServer, time_machine: MovableTime
    ) -> None:
        approver("ada")
        asked()
        sender.run_round()
        time_machine.pass_seconds(5 * HOUR)
        sender.run_round()
        first, second = mail_server.mails
        assert first["References"] == second["References"]
        assert first["Message-ID"] != second["Message-ID"]
        assert second["Subject"].startswith("[Checkpoint] Still waiting")

    def test_words_of_an_agent_are_quoted_and_lead_nowhere(self, mail_server: MailServer) -> None:
        approver("ada")
        goal = (
            "Pay.\r\nBcc: everybody@example.com\r\n\r\n<a href='https://evil.example/x'>Open the case</a>"
            " www.evil.example \u202eevil 12.50 <script>alert(1)</script>"
        )
        asked(goal=goal)
        sender.run_round()
        (mail,) = mail_server.mails
        assert mail["Bcc"] is None
        assert all(link.startswith("http://127.0.0.1:8000/") for link in links(mail))
        text, html = (part.get_content() for part in mail.iter_parts())
        for shown in (text, html):
            assert "www[.]evil[.]example" in shown
            assert "12.50" in shown
            assert "\u202e" not in shown
        assert "> Bcc: everybody@example[.]com" in text
        assert "<script>" not in html
        assert "href='" not in html

    def test_an_address_that_is_refused_for_good_is_not_tried_again_and_delays_nobody(
        self, mail_server: MailServer
    ) -> None:
        ada, adam = approver("ada"), approver("adam")
        mail_server.refusing[ada.email] = "550 no such user"
        asked()
        sender.run_round()
        assert told() == {"ada": "failed", "adam": "delivered"}
        assert "550 no such user" in Notice.objects.get(person=ada).detail
        assert len(mail_server.to(adam)) == 1

    def test_an_address_with_a_line_break_sends_nothing(self, mail_server: MailServer) -> None:
        ada = approver("ada")
        User.objects.filter(pk=ada.pk).update(email="ada@example.com\nBcc: eve@example.com")
        asked()
        sender.run_round()
        assert told() == {"ada": "failed"}
        assert mail_server.mails == []

    def test_what_fails_for_now_is_tried_again_later_and_given_up_in_the_end(
        self, mail_server: MailServer, time_machine: MovableTime, settings: Settings
    ) -> None:
        settings.CHECKPOINT_NOTICE_ATTEMPTS = 3
        ada = approver("ada")
        mail_server.refusing[ada.email] = "451 try later"
        asked()
        sender.run_round()
        assert told() == {"ada": "waiting"}
        sender.run_round()
        assert Delivery.objects.count() == 1, "not before its time"
        for _ in range(2):
            time_machine.pass_seconds(61)
            sender.run_round()
        assert told() == {"ada": "failed"}
        assert [try_.delivered for try_ in Delivery.objects.all()] == [False, False, False]


class TestALink:
    def test_asks_for_a_login_and_then_shows_the_question(self, mail_server: MailServer) -> None:
        ada = approver("ada")
        asked()
        page = follow(mail_server, ada)
        assert "Did it happen?" in page.text
        assert "It did not happen" in page.text, "the answers are offered"

    def test_s11_shows_who_decided_where_somebody_did(self, mail_server: MailServer) -> None:
        ada = approver("ada")
        case = asked()
        sender.run_round()
        decision = answer(case, DecisionKind.CONFIRM, reason="I saw the charge")
        page = follow(mail_server, ada)
        assert f"<bdi>{decision.person_name}</bdi> answered: confirm" in page.text
        assert "I saw the charge" in page.text


def follow(mail_server: MailServer, reader: User) -> Any:
    """The page at the end of a mail's link, opened by a browser in which nobody is signed in yet."""
    sender.run_round()
    link = next(link for link in links(mail_server.to(reader)[0]) if "/cases/" in link)
    browser = Client()
    login = browser.get(link.removeprefix("http://127.0.0.1:8000"))
    assert login.status_code == 302
    assert login.headers["Location"].startswith("/login/?next=/cases/")
    return browser.post(
        login.headers["Location"],
        {"username": reader.username, "password": PASSWORD, "next": login.headers["Location"].partition("next=")[2]},
        follow=True,
    )


def test_a_notice_that_failed_is_sent_again_by_hand(mail_server: MailServer) -> None:
    ada, boss = approver("ada"), person("boss", groups=("Admin",))
    mail_server.refusing[ada.email] = "550 no such user"
    asked()
    sender.run_round()
    del mail_server.refusing[ada.email]
    redeliver(notice_id=Notice.objects.get().pk, person=boss, channel="console")
    sender.run_round()
    assert told() == {"ada": "delivered"}
    assert len(mail_server.to(ada)) == 1
