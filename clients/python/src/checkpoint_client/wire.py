"""What is sent and when it is sent again, without sending anything: generators that a client drives.

A generator yields `Call` (answer it with a `Reply`, or None where nothing came back) or `Pause` (wait). So the same
rules hold for the synchronous and the asynchronous client.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from checkpoint_client.errors import Refused, Unreachable

TRIES = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds
_BUSY = (429, 502, 503, 504)  # nothing was done, or the Idempotency-Key makes the repetition harmless
_UNDER_WAY = "request_under_way"

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One request. The path lies under /api/v1/."""

    method: str
    path: str
    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    key: str = ""


@dataclass(frozen=True)
class Reply:
    """One answer, whatever its status."""

    status: int
    body: Any
    retry_after: float = 0.0


@dataclass(frozen=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


Steps = Generator["Call | Pause", "Reply | None", T]


def get(path: str, **query: str) -> Steps[Any]:
    """Reads; sent again as often as need be."""
    reply = yield from _insist(Call("GET", path, query=query))
    return reply.body


def post(path: str, body: Any, **query: str) -> Steps[Reply]:
    """Changes, under one Idempotency-Key however often it is sent."""
    return (yield from _insist(Call("POST", path, body, query=query, key=str(uuid.uuid4()))))


def put(path: str, body: Any) -> Steps[Any]:
    """Sets something: the same again is the same."""
    reply = yield from _insist(Call("PUT", path, body))
    return reply.body


def _insist(call: Call) -> Steps[Reply]:
    """Sends until there is an answer that repeating would not change.

    Raises:
        Unreachable: nothing came back.
        Refused: the answer is a refusal.
    """
    reply: Reply | None = None
    for number in range(TRIES):
        reply = yield call
        if reply is not None and not _passes_by(reply):
            break
        if number < TRIES - 1:
            asked_for = reply.retry_after if reply is not None else 0.0
            yield Pause(min(max(FIRST_PAUSE * 2**number, asked_for), LONGEST_PAUSE))
    if reply is None:
        raise Unreachable(
            f"{call.method} {call.path} was not answered in {TRIES} tries. Is the server there (CHECKPOINT_URL), and"
            " the network? What you did before this is safe; run again when it is."
        )
    if reply.status >= 400:
        raise Refused(reply.status, reply.body if isinstance(reply.body, dict) else {})
    return reply


def _passes_by(reply: Reply) -> bool:
    under_way = isinstance(reply.body, dict) and reply.body.get("code") == _UNDER_WAY
    return reply.status in _BUSY or under_way
