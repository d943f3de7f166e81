"""An event to RabbitMQ: persistent, mandatory, and confirmed by the broker (publisher confirms)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from urllib.parse import unquote, urlsplit

import amqp
from amqp.exceptions import AMQPError, MessageNacked

from checkpoint.outcomes import NotApplied, Receipt, Unanswered
from workers.registry import Call
from workers.tools.outbox_arguments import MEDIA_TYPE, Event
from workers.tools.outbox_destinations import RabbitMq

_PERSISTENT = 2


def publish(event: Event, destination: RabbitMq, password: str, call: Call) -> Receipt:
    """Publishes it and waits for the broker's confirmation.

    Raises:
        NotApplied: nothing was sent, or the broker returned the event because no queue takes it.
        Unanswered: it was sent, and the broker did not confirm it. One of several queues may have it.
    """
    try:
        with closing(_connected(destination, password, call)) as connection:
            channel = connection.channel()
            channel.confirm_select()
            return _publish(channel, event, destination, call)
    except (AMQPError, OSError) as error:
        raise NotApplied(f"nothing was sent to {destination.name}: {_words(error)}", code="never_sent") from None


def _connected(destination: RabbitMq, password: str, call: Call) -> amqp.Connection:
    parts, left = urlsplit(destination.url), max(call.deadline.remaining(), 0.1)
    port = parts.port or (5671 if parts.scheme == "amqps" else 5672)
    connection = amqp.Connection(
        host=f"{parts.hostname}:{port}",
        userid=unquote(parts.username or ""),
        password=password,
        login_method="PLAIN",
        virtual_host=unquote(parts.path[1:]) or "/",
        ssl={"server_hostname": parts.hostname} if parts.scheme == "amqps" else False,
        connect_timeout=left,
        read_timeout=left,
        write_timeout=left,
    )
    connection.connect()
    return connection


def _publish(channel: amqp.Channel, event: Event, destination: RabbitMq, call: Call) -> Receipt:
    returned: list[AMQPError] = []
    events: dict[str, set[Callable[..., None]]] = channel.events  # type: ignore[attr-defined]  # the stubs leave it out
    events["basic_return"].add(lambda error, *_: returned.append(error))
    message = amqp.Message(
        event.content,
        content_type=MEDIA_TYPE,
        delivery_mode=_PERSISTENT,
        message_id=event.id,
        type=event.type,
        app_id="checkpoint",
    )
    routing_key = destination.routing_key or event.type
    call.sending()
    try:
        channel.basic_publish_confirm(
            message,
            exchange=destination.exchange,
            routing_key=routing_key,
            mandatory=True,
            confirm_timeout=max(call.deadline.remaining(), 0.1),
        )
    except MessageNacked:
        raise Unanswered(f"{destination.name} did not take responsibility for the event (basic.nack)") from None
    except (AMQPError, OSError) as error:
        raise Unanswered(f"the event was sent to {destination.name} and not confirmed: {_words(error)}") from None
    if returned:
        # RabbitMQ returns a mandatory message before it confirms it, and only where no queue at all got it.
        raise NotApplied(f"{destination.name} has no queue for it: {_words(returned[0])}", code="no_route")
    return Receipt(event.id, {"destination": destination.name, "routing_key": routing_key, "confirmed": True})


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
