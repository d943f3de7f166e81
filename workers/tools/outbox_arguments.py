"""The arguments of `outbox.publish`, and the CloudEvent that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, JsonValue

from checkpoint.canonical import canonical
from workers.tools.http_arguments import Model

MEDIA_TYPE = "application/cloudevents+json"

_TYPE = r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?$(?!\n)"
_TYPE_WORDS = 'an event type like "com.example.order.paid"'
_SUBJECT = r"^[^\x00-\x1f\x7f]{1,256}$(?!\n)"
_NAME = r"^[a-z][a-z0-9-]{0,31}$(?!\n)"


class OutboxArguments(Model):
    """One event for a destination on the operator's list. Its id is the step's key."""

    destination: Annotated[
        str,
        Field(pattern=_NAME, max_length=32, json_schema_extra={"x-must-be": "a destination's name on the list"}),
    ]
    type: Annotated[str, Field(pattern=_TYPE, max_length=200, json_schema_extra={"x-must-be": _TYPE_WORDS})]
    subject: Annotated[str, Field(pattern=_SUBJECT, json_schema_extra={"x-must-be": "one line of text"})] | None = None
    data: JsonValue


@dataclass(frozen=True)
class Event:
    """A CloudEvent (CloudEvents 1.0.2, section 3): id and source together name it, for ever.

    Attributes:
        content: the event in the JSON format of the specification (structured mode), canonical.
    """

    id: str
    source: str
    type: str
    content: bytes


def event_of(arguments: OutboxArguments, *, key: str, source: str) -> Event:
    """The event that the arguments describe; the same bytes at every attempt."""
    members: dict[str, Any] = {
        "specversion": "1.0",
        "id": key,
        "source": source,
        "type": arguments.type,
        "datacontenttype": "application/json",
        "data": arguments.data,
    }
    if arguments.subject is not None:
        members["subject"] = arguments.subject
    return Event(key, source, arguments.type, canonical(members).encode())
