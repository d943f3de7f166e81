"""Bodies of requests, read by the one reader that knows what RFC 8785 can carry, and no further than they may go."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from checkpoint.api.problems import BodyIncomplete, BodyTooLarge
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.planning.documents import LARGEST_DOCUMENT, Document, Format, read_document
from checkpoint.planning.members import Members


@dataclass(frozen=True)
class Body:
    """What came.

    Attributes:
        sha256: of the bytes, for the fingerprint of the request.
    """

    document: Document
    sha256: str


class _DocumentParser(BaseParser):
    format: Format

    def parse(  # type: ignore[override]  # the framework hands on whatever a parser returns
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Body:
        """Raises SubmissionInvalid where it is no document, BodyTooLarge or BodyIncomplete where it cannot be had."""
        data = _read(stream)
        if len(data) > LARGEST_DOCUMENT:
            raise BodyTooLarge(f"The body has more than {LARGEST_DOCUMENT} bytes (8 MiB). Send less at once.")
        digest = hashlib.sha256(data).hexdigest()
        return Body(read_document(data, self.format), digest)


def _read(stream: IO[bytes]) -> bytes:
    """As much as may be sent and one byte. Of a caller that hangs up, the server closes the stream under its reader."""
    try:
        return stream.read(LARGEST_DOCUMENT + 1)
    except (OSError, ValueError) as error:
        raise BodyIncomplete from error


class JsonDocument(_DocumentParser):
    """JSON."""

    media_type = "application/json"
    format = "json"


class YamlDocument(_DocumentParser):
    """YAML (RFC 9512)."""

    media_type = "application/yaml"
    format = "yaml"


def body_of(request: Request) -> Body:
    """The request's body; an empty one holds an empty object."""
    body = request.data
    return body if isinstance(body, Body) else Body(Document({}), hashlib.sha256(b"").hexdigest())


def texts(request: Request, **limits: int) -> dict[str, str]:
    """The members of a small body, each a text of at most so many bytes; a member that is missing is empty.

    Raises:
        SubmissionInvalid: another member, no text, too long, or no object at all; every fault at once.
    """
    document = body_of(request).document
    faults: list[Fault] = []
    members = Members(document.value, "", faults)
    read = {name: members.text(name, longest=longest, default="") for name, longest in limits.items()}
    members.refuse_the_rest()
    if faults := [*document.faults, *faults]:
        raise SubmissionInvalid(faults)
    return read
