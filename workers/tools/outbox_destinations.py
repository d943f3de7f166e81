"""The operator's list of destinations: brokers, streams and webhooks that events may be published to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from workers.tools import operator_lists
from workers.tools.http_arguments import Model, SecretName

SETTING = "CHECKPOINT_OUTBOX_DESTINATIONS"
DEFAULT_FILE = "deploy/destinations.toml"

_WHERE = r"(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_NAME = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,200}$")]


class _Destination(Model):
    """What every entry has. All times are seconds.

    Attributes:
        source: the `source` of its events (a URI reference): who says so.
        deadline_seconds, where_to_look, link: see `checkpoint.contracts.Contract`.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    source: Annotated[str, Field(pattern=r"^[!-~]{1,256}$")] = "/checkpoint"
    deadline_seconds: Annotated[float, Field(ge=1, le=3600)] = 20.0
    where_to_look: str = ""
    link: Annotated[str, Field(pattern=r"^(?:https?://[!-~]*)?$")] = ""

    def variant(self) -> Variant:
        """Nobody can be asked, and nothing takes an event back: what may have been sent is not sent again."""
        sentence = f"Ask whoever reads {self.name} for an event whose id is the step's key."
        contract = Contract(
            RecoveryClass.OPAQUE,
            Reversibility.IRREVERSIBLE,
            deadline=self.deadline_seconds,
            where_to_look=self.where_to_look or sentence,
            link=self.link,
            facts=("destination", "routing_key", "stream", "status", "confirmed"),
        )
        when: dict[str, Any] = {"properties": {"destination": {"const": self.name}}, "required": ["destination"]}
        return Variant(f"{self.name}: opaque", contract, when)


class RabbitMq(_Destination):
    """An exchange of RabbitMQ, and the routing key; without one, the event's type is it."""

    kind: Literal["rabbitmq"]
    url: Annotated[str, Field(pattern=rf"^amqps?://[A-Za-z0-9._~%-]+@{_WHERE}(?:/[A-Za-z0-9._~%-]*)?$")]
    password: SecretName
    exchange: Annotated[str, Field(pattern=r"^[\x21-\x7e]{0,200}$")] = ""
    routing_key: Annotated[str, Field(pattern=r"^[\x21-\x7e]{0,200}$")] = ""


class RedisStream(_Destination):
    """A stream of Redis or Valkey; with `longest`, it is trimmed to about so many entries."""

    kind: Literal["redis"]
    url: Annotated[str, Field(pattern=rf"^rediss?://(?:[A-Za-z0-9._~%-]+@)?{_WHERE}(?:/[0-9]{{1,4}})?$")]
    password: SecretName | None = None
    stream: _NAME
    longest: Annotated[int, Field(ge=1)] | None = None


class Webhook(_Destination):
    """A receiver of Standard Webhooks.

    Attributes:
        secret: name of the secret that signs, `whsec_` and base64.
        private: the host may have a private, loopback or link-local address; only then plain http is allowed.
        not_applied_statuses: statuses by which the receiver says that it took nothing.
    """

    kind: Literal["webhook"]
    url: Annotated[str, Field(pattern=rf"^https?://{_WHERE}/[!-~]*$")]
    secret: SecretName
    private: bool = False
    not_applied_statuses: list[Annotated[int, Field(ge=400, le=599)]] = Field(default=[401])


_ENTRY: Any = Annotated[RabbitMq | RedisStream | Webhook, Field(discriminator="kind")]

# A destination that is on no list is refused before anything is sent.
UNLISTED = Variant(
    name="unlisted",
    contract=Contract(
        RecoveryClass.OPAQUE,
        Reversibility.IRREVERSIBLE,
        where_to_look=f"Nowhere: this destination is not on the list ({SETTING}), so nothing is ever sent to it.",
    ),
)


class Destinations:
    """The destinations by name."""

    def __init__(self, destinations: Iterable[RabbitMq | RedisStream | Webhook]) -> None:
        self._by_name = {one.name: one for one in destinations}

    def get(self, name: str) -> RabbitMq | RedisStream | Webhook | None:
        """The destination of that name, if it is on the list."""
        return self._by_name.get(name)

    def variants(self) -> Sequence[Variant]:
        """The contracts of all of them; the first that matches counts."""
        return [*(one.variant() for one in self._by_name.values()), UNLISTED]


@lru_cache(maxsize=1)
def load() -> Destinations:
    """The list of the file that CHECKPOINT_OUTBOX_DESTINATIONS names, once per process.

    Raises:
        operator_lists.ListInvalid: the file cannot be used.
    """
    return Destinations(operator_lists.read(_ENTRY, table="destination", setting=SETTING, default=DEFAULT_FILE))
