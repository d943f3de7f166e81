"""The body of a request: the same bytes at every attempt, and the JSON value that answers are compared with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from checkpoint.canonical import canonical
from workers.tools import http_answer
from workers.tools.http_arguments import HttpArguments


@dataclass(frozen=True)
class Body:
    """A body.

    Attributes:
        sent: what `equals_sent` and `compare` point into; a form is an object of its values.
        content: its bytes; None for no body.
    """

    sent: Any
    content: bytes | None = None
    media_type: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The header that names its type, where there is a body."""
        return {"Content-Type": self.media_type} if self.media_type else {}


def body_of(arguments: HttpArguments, key: str) -> Body:
    """The body that the arguments stand for, with `{key}` filled in."""
    if arguments.form is not None:
        form = http_answer.with_key(arguments.form, key)
        return Body(form, urlencode(list(_pairs(form))).encode(), "application/x-www-form-urlencoded")
    if arguments.body is None:
        return Body(None)
    sent = http_answer.with_key(arguments.body, key)
    return Body(sent, canonical(sent).encode(), "application/json")


def _pairs(form: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for name in sorted(form):
        values = form[name] if isinstance(form[name], list) else [form[name]]
        for value in values:
            yield name, value if isinstance(value, str) else canonical(value)
