"""The body of a request: the same bytes at every attempt, and the JSON value that answers are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode

from checkpoint.canonical import canonical
from workers.registry import Call
from workers.tools import http_answer
from workers.tools.http_arguments import HttpArguments

CHUNK = 64 * 1024  # bytes


@dataclass(frozen=True)
class Body:
    """A body: its bytes, whole or in chunks, None for no body; and the headers that describe them."""

    content: bytes | Iterator[bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)


@contextmanager
def body_of(arguments: HttpArguments, call: Call) -> Iterator[Body]:
    """The body that the arguments stand for; an artifact's bytes are held against its hash before the first is sent.

    Raises:
        NotApplied: the artifact's bytes are lost or damaged.
    """
    if arguments.body is None:
        yield _written_out(arguments, call.key)
        return
    size = call.artifacts.size(arguments.body)
    with call.artifacts.open(arguments.body) as file:
        # With its size the body is not sent in HTTP's chunks, which not every provider takes.
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        yield Body(iter(partial(file.read, CHUNK), b""), headers)


def sent_value(arguments: HttpArguments, key: str) -> Any:
    """What `equals_sent` and `compare` point into: the JSON value, the form's values, or the artifact's hash."""
    if arguments.body is not None:
        return {"sha256": arguments.body.sha256}
    return http_answer.with_key(arguments.json_value if arguments.form is None else arguments.form, key)


def _written_out(arguments: HttpArguments, key: str) -> Body:
    sent = sent_value(arguments, key)
    if arguments.form is not None:
        return Body(urlencode(list(_pairs(sent))).encode(), {"Content-Type": "application/x-www-form-urlencoded"})
    if sent is None:
        return Body()
    return Body(canonical(sent).encode(), {"Content-Type": "application/json"})


def _pairs(form: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for name in sorted(form):
        values = form[name] if isinstance(form[name], list) else [form[name]]
        for value in values:
            yield name, value if isinstance(value, str) else canonical(value)
