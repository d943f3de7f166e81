"""`outbox.publish`: one event to a system that knows no keys, at most once by the machine.

The step itself is the outbox: written ahead, unique on its key, `started` committed before anything is sent. After a
crash in mid-air nobody can be asked, so the contract is opaque: the machine never sends it again, and a person is asked
(docs/decisions/the-step-is-the-outbox.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from checkpoint.contracts import Variant
from checkpoint.crash_points import reach
from checkpoint.outcomes import (
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Receipt,
    Unanswered,
    Verification,
)
from workers.registry import Call
from workers.tools import outbox_destinations, outbox_rabbitmq, outbox_redis, outbox_webhook
from workers.tools.outbox_arguments import OutboxArguments, event_of
from workers.tools.outbox_destinations import SETTING, Destinations, RabbitMq, RedisStream, Webhook
from workers.tools.secrets import Secrets


class OutboxPublish:
    """One instance serves all calls; each has a connection of its own."""

    name = "outbox.publish"
    version = "1"
    summary = "Publishes one CloudEvent to a broker, a stream or a webhook on the operator's list"
    reports_sending = True
    Arguments = OutboxArguments

    def __init__(self, destinations: Destinations | None = None, secrets: Secrets | None = None) -> None:
        self._given = destinations
        self._secrets = secrets or Secrets()

    def variants(self) -> Sequence[Variant]:
        """One contract a destination on the list."""
        return self._destinations().variants()

    def execute(self, arguments: OutboxArguments, call: Call) -> Receipt:
        """Publishes the event and waits until the destination has taken it.

        Raises:
            NotApplied: nothing was sent, or the destination said that it took nothing.
            Unanswered: it was sent, and whether it was taken is not known.
        """
        with self._redacted():
            destination = self._destinations().get(arguments.destination)
            if destination is None:
                said = f"nothing was sent: {arguments.destination} is not on the list of {SETTING}"
                raise NotApplied(said, code="unlisted", permanent=True)
            receipt = self._publish(arguments, destination, call)
            reach("outbox.publish/published", call.step_name)
            return receipt

    def inspect(self, arguments: OutboxArguments, call: Call) -> Inspection:
        """Never asked: the contract is opaque."""
        return Inconclusive("what was published cannot be looked up")

    def verify(self, arguments: OutboxArguments, call: Call) -> Verification:
        """Never asked: the contract says so."""
        return NotVisible("what was published cannot be read back")

    def _publish(self, arguments: OutboxArguments, to: RabbitMq | RedisStream | Webhook, call: Call) -> Receipt:
        event, secret = event_of(arguments, key=call.key, source=to.source), self._secrets.value
        match to:
            case RabbitMq():
                return outbox_rabbitmq.publish(event, to, secret(to.password), call)
            case RedisStream():
                return outbox_redis.publish(event, to, secret(to.password) if to.password else None, call)
            case Webhook():
                return outbox_webhook.publish(event, to, secret(to.secret), call)

    def _destinations(self) -> Destinations:
        return self._given or outbox_destinations.load()

    @contextmanager
    def _redacted(self) -> Iterator[None]:
        """No message leaves with a secret in it."""
        try:
            yield
        except NotApplied as error:
            message = self._secrets.redact(str(error))
            raise NotApplied(message, code=error.code, permanent=error.permanent) from None
        except Unanswered as error:
            raise Unanswered(self._secrets.redact(str(error))) from None
