"""POST under an Idempotency-Key (S50): carried out once, answered the same, whatever happens in between."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkpoint import kept_replies
from checkpoint.api.bodies import JsonDocument
from checkpoint.api.problems import BodyIncomplete
from checkpoint.errors import RequestUnderWay
from checkpoint.kept_replies import Held, Reply
from checkpoint.models import KeptReply, Workflow
from checkpoint.transactions import one_transaction
from tests import factories
from tests import submissions as driver
from tests.api_driver import Api
from tests.time_driver import MovableTime, time_machine

__all__ = ["time_machine"]

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def bot() -> User:
    """An agent's account, with tools to use."""
    driver.published()
    return factories.person("bot", groups=["Agent"], teams=[factories.team("Billing")])


@pytest.fixture
def api(bot: User) -> Api:
    """The agent's program."""
    return Api.of(bot)


def test_s50_the_same_request_twice_is_one_workflow_and_the_same_answer(api: Api) -> None:
    first = api.post("workflows/", driver.document(), key="a")
    again = api.post("workflows/", driver.document(), key="a")
    assert (first.status_code, again.status_code) == (201, 201)
    assert Workflow.objects.count() == 1
    assert first.content == again.content
    assert first["Location"] == again["Location"]
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"


def test_s50_another_payload_under_the_key_is_refused(api: Api) -> None:
    api.post("workflows/", driver.document(), key="a")
    answered = api.post("workflows/", driver.document(goal="Something else."), key="a")
    assert (answered.status_code, answered.json()["code"]) == (422, "idempotency_key_reused")
    assert Workflow.objects.count() == 1


def test_s50_another_address_under_the_key_is_refused(api: Api) -> None:
    made = api.post("workflows/", {"goal": "x", "steps": [driver.invoice()]}, key="a").json()
    answered = api.post(f"{made['url']}abandonment/", {"reason": "No."}, key="a")
    assert answered.json()["code"] == "idempotency_key_reused"


def test_s50_without_a_key_nothing_is_done(api: Api) -> None:
    answered = api.post("workflows/", driver.document(), key="")
    assert (answered.status_code, answered.json()["code"]) == (400, "idempotency_key_missing")
    assert answered["Content-Type"] == "application/problem+json"
    assert not Workflow.objects.exists()


def test_keys_of_two_accounts_are_two_keys(api: Api) -> None:
    other = Api.of(factories.person("robot", groups=["Agent"], teams=[factories.team("Legal")]))
    assert api.post("workflows/", driver.document(), key="a").status_code == 201
    assert other.post("workflows/", driver.document(), key="a").status_code == 201
    assert Workflow.objects.count() == 2


def test_what_was_refused_can_be_sent_again_under_its_key(api: Api) -> None:
    refused = api.post("workflows/", {"goal": "", "steps": []}, key="a")
    assert (refused.status_code, refused.json()["code"]) == (422, "submission_invalid")
    assert {fault["path"] for fault in refused.json()["faults"]} >= {"/goal", "/steps"}
    assert api.post("workflows/", driver.document(), key="a").status_code == 201


def test_s50_of_twenty_at_once_one_is_carried_out(bot: User, api: Api) -> None:
    def send(_: int) -> Any:
        try:
            return api.post("workflows/", driver.document(), key="a")
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        answered = list(pool.map(send, range(20)))
    assert Workflow.objects.count() == 1
    assert {each.status_code for each in answered} <= {201, 409}
    under_way = [each.json()["code"] for each in answered if each.status_code == 409]
    assert set(under_way) <= {"request_under_way"}
    assert len({each.content for each in answered if each.status_code == 201}) == 1


def hold(bot: User, fingerprint: str = "f") -> Held:
    """The first request under a key, cut down before it was carried out."""
    held = kept_replies.hold(account=bot, key="a", fingerprint=fingerprint)
    assert isinstance(held, Held)
    return held


def test_a_request_that_was_cut_down_is_carried_out_by_its_repetition(bot: User, time_machine: MovableTime) -> None:
    hold(bot)
    with pytest.raises(RequestUnderWay):
        hold(bot)
    time_machine.pass_seconds(61)
    second = hold(bot)
    kept_replies.keep(second, Reply(201, "{}"))
    assert kept_replies.hold(account=bot, key="a", fingerprint="f") == Reply(201, "{}")


def test_a_slow_request_that_was_taken_over_changes_nothing(bot: User, time_machine: MovableTime) -> None:
    slow = hold(bot)
    time_machine.pass_seconds(61)
    hold(bot)

    @one_transaction
    def change_and_keep() -> None:
        factories.team("Made by the slow one")
        slow.keep(Reply(201, "{}"))

    with pytest.raises(RequestUnderWay):
        change_and_keep()
    assert not User.objects.filter(teams__name="Made by the slow one").exists()
    assert KeptReply.objects.get().status is None


def test_the_reply_is_stored_with_what_it_is_about(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(held: Held, reply: Reply) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(Held, "keep", broken)
    assert api.post("workflows/", driver.document(), key="a").status_code == 500
    monkeypatch.undo()
    assert not Workflow.objects.exists()
    assert api.post("workflows/", driver.document(), key="a").status_code == 201


def test_replies_are_forgotten_after_a_week(api: Api, time_machine: MovableTime) -> None:
    api.post("workflows/", driver.document(), key="a")
    assert kept_replies.collect() == 0
    time_machine.pass_seconds(8 * 86_400)
    assert kept_replies.collect() == 1
    assert not KeptReply.objects.exists()


def test_a_key_is_short_and_printable(api: Api) -> None:
    answered = api.post("workflows/", driver.document(), key="x" * 256)
    assert (answered.status_code, answered.json()["code"]) == (422, "action_incomplete")
    assert json.loads(answered.content)["detail"].startswith("Idempotency-Key: ")


def test_who_hangs_up_is_no_fault_of_ours() -> None:
    """The server closes the body under whoever still reads it: no error in the log, nothing held."""
    body = io.BytesIO(b"{}")
    body.close()
    with pytest.raises(BodyIncomplete):
        JsonDocument().parse(body)


def test_an_answered_request_costs_no_further_statement(api: Api) -> None:
    """Nothing is let go of what was answered: the reply's own transaction is the last one."""
    with CaptureQueriesContext(connection) as statements:
        api.post("workflows/", driver.document(), key="a")
    assert [one["sql"] for one in statements.captured_queries].count("COMMIT") == 2
    assert KeptReply.objects.get().status == 201
