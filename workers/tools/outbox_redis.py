"""An event to a stream of Redis or Valkey. One command on a connection of its own: the client repeats nothing."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from urllib.parse import unquote, urlsplit

from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as Slow
from redis.retry import Retry

from checkpoint.outcomes import NotApplied, Receipt, Unanswered
from workers.registry import Call
from workers.tools.outbox_arguments import Event
from workers.tools.outbox_destinations import RedisStream


def publish(event: Event, destination: RedisStream, password: str | None, call: Call) -> Receipt:
    """Adds it to the stream; the receipt's operation id is the entry's.

    Raises:
        NotApplied: nothing was sent, or the server answered that it did not do it.
        Unanswered: it was sent, and no answer came.
    """
    with closing(_Closed(_connection(destination, password, call))) as opened:
        try:
            opened.connection.connect()  # type: ignore[no-untyped-call]  # redis-py leaves its types out
        except (RedisError, OSError) as error:
            raise NotApplied(f"nothing was sent to {destination.name}: {error}", code="never_sent") from None
        trimmed = ["MAXLEN", "~", destination.longest] if destination.longest else []
        fields = ["id", event.id, "source", event.source, "type", event.type, "event", event.content]
        command = ("XADD", destination.stream, *trimmed, "*", *fields)
        call.sending()
        try:
            opened.connection.send_command(*command)  # type: ignore[no-untyped-call]  # as above
            entry = opened.connection.read_response()
        except (Lost, Slow, OSError) as error:
            raise Unanswered(f"the event was sent to {destination.name}, and no answer came: {error}") from None
        except ResponseError as error:
            # A command that the server answers with an error was not carried out.
            raise NotApplied(f"{destination.name} refused it: {error}", code="refused") from None
    return Receipt(entry.decode(), {"destination": destination.name, "stream": destination.stream})


class _Closed:
    """redis-py's connection, with the name that `closing` knows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def close(self) -> None:
        self.connection.disconnect()  # type: ignore[no-untyped-call]  # as above


def _connection(destination: RedisStream, password: str | None, call: Call) -> Connection:
    parts, left = urlsplit(destination.url), max(call.deadline.remaining(), 0.1)
    settings: dict[str, Any] = {
        "host": parts.hostname,
        "port": parts.port or 6379,
        "db": int(parts.path[1:] or 0),
        "username": unquote(parts.username) if parts.username else None,
        "password": password,
        "socket_timeout": left,
        "socket_connect_timeout": left,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    return (SSLConnection if parts.scheme == "rediss" else Connection)(**settings)
