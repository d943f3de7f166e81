"""Notices to team channels: Slack-compatible messages and Standard Webhooks, to a real receiver."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest
from pytest_django.fixtures import Settings

from approvals.models import Notice
from approvals.notifying.notice_rules import ChannelFormat
from checkpoint import clock
from tests.notice_driver import asked, channel, told
from tests.notice_receivers import Receiver
from tests.time_driver import MovableTime
from workers.notices import sender

pytestmark = pytest.mark.usefixtures("database")

SECRET = "whsec_" + base64.b64encode(b"a secret of the receiver's").decode()


class TestSlack:
    def test_a_message_arrives_with_a_link_to_the_case(self, receiver: Receiver) -> None:
        channel(receiver)
        case = asked(goal="Pay <!channel> ```now``` <https://evil.example|here> & *go*")
        sender.run_round()
        (message,) = receiver.received
        text = message.value["text"]
        assert text.endswith(f"<http://127.0.0.1:8000/cases/{case.pk}/|Open the case>")
        assert "<!channel>" not in text
        assert "&lt;!channel&gt;" in text
        assert text.count("```") == 2
        assert "evil.example" not in text
        assert set(told().values()) == {"delivered"}

    def test_a_receiver_that_is_away_is_tried_again_and_asks_for_its_pause(
        self, receiver: Receiver, time_machine: MovableTime
    ) -> None:
        receiver.answers = [(500, {}), (429, {"Retry-After": "600"})]
        channel(receiver)
        asked()
        sender.run_round()
        assert Notice.objects.get().detail == "HTTP 500: ok"
        time_machine.pass_seconds(31)
        sender.run_round()
        notice = Notice.objects.get()
        assert (notice.due_at - clock.now()).total_seconds() > 590
        time_machine.pass_seconds(601)
        sender.run_round()
        assert set(told().values()) == {"delivered"}

    def test_an_address_that_is_gone_is_given_up_at_once(self, receiver: Receiver) -> None:
        receiver.answers = [(410, {})]
        channel(receiver)
        asked()
        sender.run_round()
        assert set(told().values()) == {"failed"}

    def test_no_redirect_is_followed(self, receiver: Receiver) -> None:
        receiver.answers = [(302, {"Location": f"http://{receiver.host}/elsewhere"})]
        channel(receiver)
        asked()
        sender.run_round()
        assert [request.path for request in receiver.received] == ["/hook"]
        assert Notice.objects.get().detail == "HTTP 302: ok"

    def test_a_private_address_is_refused_unless_the_operator_allows_it(
        self, receiver: Receiver, settings: Settings
    ) -> None:
        settings.CHECKPOINT_PRIVATE_WEBHOOK_HOSTS = []
        channel(receiver, name="plain")
        channel(receiver, name="tls", url=f"https://{receiver.host}/hook?token=hidden")
        asked()
        sender.run_round()
        assert receiver.received == []
        details = dict(Notice.objects.values_list("channel__name", "detail"))
        assert "not https" in details["plain"]
        assert "not a public one" in details["tls"]
        assert "hidden" not in str(details)

    def test_a_channel_that_was_switched_off_gets_nothing_that_still_waits(self, receiver: Receiver) -> None:
        hook = channel(receiver)
        asked()
        hook.enabled = False
        hook.save()
        sender.run_round()
        assert receiver.received == []
        assert Notice.objects.get().detail == "the channel is switched off"


class TestStandardWebhooks:
    def test_a_payload_arrives_signed_and_keeps_its_id(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, time_machine: MovableTime
    ) -> None:
        monkeypatch.setenv("CHECKPOINT_SECRET_TEAM_HOOK", SECRET)
        receiver.answers = [(503, {})]
        channel(receiver, ChannelFormat.STANDARD)
        case = asked()
        sender.run_round()
        time_machine.pass_seconds(31)
        sender.run_round()
        first, second = receiver.received
        for request in (first, second):
            signed = b".".join(
                [request.headers["webhook-id"].encode(), request.headers["webhook-timestamp"].encode(), request.content]
            )
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            digest = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
            assert request.headers["webhook-signature"] == f"v1,{digest}"
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) >= 31
        assert second.value["type"] == "case.asked"
        assert second.value["data"]["case_id"] == str(case.pk)
        assert json.dumps(second.value).count(SECRET) == 0

    @pytest.mark.parametrize(("secret", "said"), [("", "is not set"), ("not-of-that-form", "whsec_")])
    def test_a_secret_that_cannot_sign_sends_nothing_and_says_what_to_set(
        self, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, secret: str, said: str
    ) -> None:
        monkeypatch.setenv("CHECKPOINT_SECRET_TEAM_HOOK", secret)
        channel(receiver, ChannelFormat.STANDARD)
        asked()
        sender.run_round()
        assert receiver.received == []
        assert said in Notice.objects.get().detail
        assert "not-of-that-form" not in Notice.objects.get().detail
