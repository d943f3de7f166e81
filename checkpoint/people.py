"""Who acts. Every change names one."""

from __future__ import annotations

from dataclasses import dataclass

ENGINE_CHANNEL = "engine"
ANONYMOUS = "(anonymous)"  # no account can be called so: names hold no parentheses


@dataclass(frozen=True)
class Actor:
    """The author of a change, kept as text so that the record outlives the account.

    Attributes:
        name: a user name, or the name of the machine part that acted ("engine").
        channel: by which way: "console", "command", "engine", "api", "shell".
    """

    name: str
    channel: str


ENGINE = Actor(name="engine", channel=ENGINE_CHANNEL)
