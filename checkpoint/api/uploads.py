"""The bytes of an upload: limited and hashed on their way to a temporary file, and never whole in memory."""

from __future__ import annotations

import base64
import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from django.conf import settings
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from checkpoint.api.bodies import Body
from checkpoint.api.problems import BodyTooLarge
from checkpoint.artifacts import IN_MEMORY
from checkpoint.errors import ActionIncomplete
from checkpoint.planning.documents import Document
from checkpoint.storage.stored_bytes import CHUNK

DIGEST = "Content-Digest"  # RFC 9530
_SHA_256 = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")


@dataclass(frozen=True)
class Upload(Body):
    """A body that is bytes."""

    file: IO[bytes]


class RawBytes(BaseParser):
    """Anything at all, as it comes."""

    media_type = "*/*"

    def parse(  # type: ignore[override]  # the framework hands on whatever a parser returns
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Upload:
        """Raises BodyTooLarge where there are more bytes than an artifact may have; the rest is not read."""
        digest, size, file = hashlib.sha256(), 0, tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (it outlives)
        for chunk in iter(partial(stream.read, CHUNK), b""):
            size += len(chunk)
            if size > settings.CHECKPOINT_LARGEST_ARTIFACT:
                raise BodyTooLarge(f"An artifact has at most {settings.CHECKPOINT_LARGEST_ARTIFACT:,} bytes.")
            digest.update(chunk)
            file.write(chunk)
        file.seek(0)
        return Upload(Document({}), digest.hexdigest(), file)


def chunks(request: Request) -> Iterator[bytes]:
    """The bytes that came; none where there was no body."""
    upload = request.data
    return iter(partial(upload.file.read, CHUNK), b"") if isinstance(upload, Upload) else iter(())


def check_digest(request: Request, sha256: str) -> None:
    """Raises ActionIncomplete where the header names another hash than that of the bytes that came."""
    header = request.headers.get(DIGEST, "").strip()
    if not header:
        return
    found = _SHA_256.search(header)
    if found is None:
        raise ActionIncomplete(DIGEST, "send sha-256=:…: with the hash in base64 (RFC 9530), or leave it out.")
    if base64.b64decode(found.group(1)).hex() != sha256:
        raise ActionIncomplete(DIGEST, f"the bytes that came have the SHA-256 {sha256}; send them again.")
