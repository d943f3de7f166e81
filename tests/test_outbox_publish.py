"""`outbox.publish`: an event arrives as it was written ahead, or it is said truly that nobody knows."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from checkpoint.contracts import RecoveryClass
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import NotApplied, Unanswered
from checkpoint.planning.argument_schemas import closed, match_variant, prepare_arguments
from tests.broker_driver import EXCHANGE, PASSWORD, STREAM, RabbitMqServer, Valkey
from tests.http_driver import call
from tests.notice_receivers import Receiver, free_port, silent_server
from workers.tools import operator_lists, outbox_destinations
from workers.tools.outbox_arguments import OutboxArguments
from workers.tools.outbox_destinations import Destinations, RabbitMq, RedisStream, Webhook
from workers.tools.outbox_publish import OutboxPublish
from workers.tools.secrets import Secrets

SCHEMA = closed(OutboxArguments.model_json_schema())
KEY = base64.b64encode(b"k" * 24).decode()
ENVIRON = {"CHECKPOINT_SECRET_BROKER": PASSWORD, "CHECKPOINT_SECRET_HOOK": f"whsec_{KEY}"}

WRONG = {"CHECKPOINT_SECRET_BROKER": "wrong-one-1"}


def tool(destination: RabbitMq | RedisStream | Webhook) -> OutboxPublish:
    return OutboxPublish(Destinations([destination]), Secrets(ENVIRON))


def arguments(destination: str, **more: Any) -> OutboxArguments:
    given = {"destination": destination, "type": "order.paid", "data": {"order": "A-17", "cents": 1200}} | more
    return OutboxArguments.model_validate_json(prepare_arguments(SCHEMA, given), strict=True)


def assert_event(content: bytes | str, key: str) -> None:
    assert json.loads(content) == {
        "specversion": "1.0",
        "id": key,
        "source": "/shop",
        "type": "order.paid",
        "subject": "A-17",
        "datacontenttype": "application/json",
        "data": {"order": "A-17", "cents": 1200},
    }


def stream(port: int, **more: Any) -> RedisStream:
    url = f"redis://127.0.0.1:{port}/0"
    known = {"name": "stream", "kind": "redis", "source": "/shop", "url": url, "password": "BROKER", "stream": STREAM}
    return RedisStream.model_validate(known | more)


class TestRedis:
    def test_the_event_is_one_entry(self, valkey: Valkey) -> None:
        made = call()
        receipt = tool(stream(valkey.port)).execute(arguments("stream", subject="A-17"), made)
        ((entry, fields),) = valkey.entries()
        assert receipt.operation_id == entry
        assert (fields["id"], fields["source"], fields["type"]) == (made.key, "/shop", "order.paid")
        assert_event(fields["event"], made.key)

    def test_the_stream_is_kept_short_where_the_operator_says_so(self, valkey: Valkey) -> None:
        for _ in range(3):
            tool(stream(valkey.port, longest=1000)).execute(arguments("stream"), call())
        assert len(valkey.entries()) == 3

    def test_an_error_in_answer_proves_that_nothing_was_added(self, valkey: Valkey) -> None:
        valkey.client.set(STREAM, "no stream")
        with pytest.raises(NotApplied, match="WRONGTYPE") as refused:
            tool(stream(valkey.port)).execute(arguments("stream"), call())
        assert refused.value.code == "refused"

    def test_no_answer_is_unknown_and_never_sent_twice(self, valkey: Valkey) -> None:
        valkey.client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        with pytest.raises(Unanswered, match="no answer came"):
            tool(stream(valkey.port)).execute(arguments("stream"), call(seconds=0.5))
        valkey.client.execute_command("CLIENT", "UNPAUSE")
        assert len(valkey.entries()) <= 1

    def test_a_server_that_is_not_there_or_does_not_let_us_in_got_nothing(self, valkey: Valkey) -> None:
        with pytest.raises(NotApplied, match="nothing was sent"):
            tool(stream(free_port())).execute(arguments("stream"), call())
        wrong = OutboxPublish(Destinations([stream(valkey.port)]), Secrets(WRONG))
        with pytest.raises(NotApplied) as refused:
            wrong.execute(arguments("stream"), call())
        assert "wrong-one-1" not in str(refused.value)

    def test_a_server_that_says_nothing_holds_nobody_past_the_deadline(self) -> None:
        made = call(seconds=0.5)
        with silent_server() as silent, pytest.raises(NotApplied):
            tool(stream(silent.port)).execute(arguments("stream"), made)
        assert made.deadline.remaining() > -2


def hook(host: str, **more: Any) -> Webhook:
    url = f"http://{host}/in"
    known = {"name": "hook", "kind": "webhook", "source": "/shop", "url": url, "secret": "HOOK", "private": True}
    return Webhook.model_validate(known | more)


class TestWebhooks:
    def test_the_event_is_posted_and_signed(self, receiver: Receiver) -> None:
        made = call()
        receipt = tool(hook(receiver.host)).execute(arguments("hook", subject="A-17"), made)
        (got,) = receiver.received
        assert (got.path, got.headers["content-type"]) == ("/in", "application/cloudevents+json")
        assert_event(got.content, made.key)
        assert (receipt.operation_id, got.headers["webhook-id"]) == (made.key, made.key)
        signed = f"{made.key}.{got.headers['webhook-timestamp']}.".encode() + got.content
        expected = base64.b64encode(hmac.digest(b"k" * 24, signed, hashlib.sha256)).decode()
        assert got.headers["webhook-signature"] == f"v1,{expected}"

    @pytest.mark.parametrize("status", [302, 400, 404, 410, 429, 500, 503])
    def test_a_status_proves_nothing_unless_the_operator_says_so(self, receiver: Receiver, status: int) -> None:
        receiver.answers = [(status, {"Location": "/elsewhere"})] * 2
        with pytest.raises(Unanswered, match=str(status)):
            tool(hook(receiver.host)).execute(arguments("hook"), call())
        if status >= 400:
            with pytest.raises(NotApplied):
                tool(hook(receiver.host, not_applied_statuses=[status])).execute(arguments("hook"), call())
        assert {got.path for got in receiver.received} == {"/in"}

    def test_what_never_left_is_not_applied(self) -> None:
        with pytest.raises(NotApplied, match="nothing was sent"):
            tool(hook(f"127.0.0.1:{free_port()}")).execute(arguments("hook"), call())
        with pytest.raises(NotApplied, match="not a public one"):
            tool(hook("127.0.0.1:1", url="https://127.0.0.1:1/in", private=False)).execute(arguments("hook"), call())
        with pytest.raises(NotApplied, match="not https"):
            tool(hook("127.0.0.1:1", private=False)).execute(arguments("hook"), call())

    def test_no_answer_is_unknown(self) -> None:
        with silent_server() as silent, pytest.raises(Unanswered, match="no answer came"):
            tool(hook(f"127.0.0.1:{silent.port}")).execute(arguments("hook"), call(seconds=0.5))

    def test_without_its_secret_nothing_is_sent(self, receiver: Receiver) -> None:
        with pytest.raises(NotApplied, match="CHECKPOINT_SECRET_HOOK is not set"):
            OutboxPublish(Destinations([hook(receiver.host)]), Secrets({})).execute(arguments("hook"), call())
        assert receiver.received == []


def queue(port: int, **more: Any) -> RabbitMq:
    url = f"amqp://shop@127.0.0.1:{port}"
    known = {"name": "queue", "kind": "rabbitmq", "source": "/shop", "url": url, "password": "BROKER"}
    return RabbitMq.model_validate(known | {"exchange": EXCHANGE} | more)


class TestRabbitMq:
    def test_the_event_is_in_the_queue_once_it_is_confirmed(self, rabbitmq: RabbitMqServer) -> None:
        made = call()
        receipt = tool(queue(rabbitmq.port)).execute(arguments("queue", subject="A-17"), made)
        message = rabbitmq.take()
        assert_event(message.body, made.key)
        properties = message.properties
        assert (properties["message_id"], properties["delivery_mode"]) == (made.key, 2)
        assert (properties["type"], properties["content_type"]) == ("order.paid", "application/cloudevents+json")
        assert receipt.operation_id == made.key
        assert rabbitmq.take() is None

    def test_an_event_that_no_queue_takes_comes_back(self, rabbitmq: RabbitMqServer) -> None:
        with pytest.raises(NotApplied, match="no queue") as refused:
            tool(queue(rabbitmq.port, routing_key="elsewhere")).execute(arguments("queue"), call())
        assert refused.value.code == "no_route"
        assert rabbitmq.take() is None

    def test_an_exchange_that_is_not_there_leaves_it_unknown(self, rabbitmq: RabbitMqServer) -> None:
        """The broker closes the channel after the event was sent; that this proves anything is not in the protocol."""
        with pytest.raises(Unanswered, match="NOT_FOUND"):
            tool(queue(rabbitmq.port, exchange="nowhere")).execute(arguments("queue"), call())

    def test_a_wrong_password_is_refused_before_anything_is_sent(self, rabbitmq: RabbitMqServer) -> None:
        wrong = OutboxPublish(
            Destinations([queue(rabbitmq.port)]), Secrets({"CHECKPOINT_SECRET_BROKER": "wrong-one-1"})
        )
        with pytest.raises(NotApplied) as refused:
            wrong.execute(arguments("queue"), call())
        assert "wrong-one-1" not in str(refused.value)

    def test_a_broker_that_is_not_there_or_says_nothing_got_nothing(self) -> None:
        with pytest.raises(NotApplied, match="nothing was sent"):
            tool(queue(free_port())).execute(arguments("queue"), call())
        with silent_server() as silent, pytest.raises(NotApplied):
            tool(queue(silent.port)).execute(arguments("queue"), call(seconds=0.5))


class TestTheList:
    def test_each_destination_is_opaque_and_the_rest_is_refused(self) -> None:
        made = tool(stream(1))
        variants = {one.name: one for one in made.variants()}
        stored = [{"name": one.name, "when": one.when} for one in variants.values()]
        picked = variants[match_variant(stored, {"destination": "stream"})].contract
        assert (picked.recovery, picked.can_inspect, picked.can_verify) == (RecoveryClass.OPAQUE, False, False)
        assert match_variant(stored, {"destination": "other"}) == "unlisted"
        with pytest.raises(NotApplied, match="not on the list"):
            made.execute(arguments("other"), call())

    @pytest.mark.parametrize(
        "entry",
        [
            'name = "a"\nkind = "fax"\nurl = "fax://x"',
            'name = "a"\nkind = "redis"\nurl = "redis://role:password@host/0"\nstream = "s"',
            'name = "a"\nkind = "webhook"\nurl = "ftp://host/"\nsecret = "HOOK"',
        ],
    )
    def test_a_wrong_entry_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
        (tmp_path / "destinations.toml").write_text(f"[[destination]]\n{entry}\n")
        monkeypatch.setenv(outbox_destinations.SETTING, str(tmp_path / "destinations.toml"))
        outbox_destinations.load.cache_clear()
        with pytest.raises(operator_lists.ListInvalid, match=r"\[\[destination\]\] number 1"):
            outbox_destinations.load()

    def test_the_shipped_list_can_be_read(self) -> None:
        outbox_destinations.load.cache_clear()
        assert [one.name for one in outbox_destinations.load().variants()] == ["unlisted"]


@pytest.mark.parametrize(
    "given", [{"type": "two words"}, {"type": "a\n"}, {"subject": "a\nb"}, {"source": "/me"}, {"destination": "A"}]
)
def test_the_schema_refuses_what_is_no_event(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsInvalid):
        arguments(**{"destination": "hook", **given})
