"""What a program printed: its beginning and its hash as facts, and as much as is kept of it as an artifact."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from checkpoint.artifacts import UNKNOWN_TYPE
from checkpoint.outcomes import Facts
from workers.registry import Call

log = logging.getLogger(__name__)

LARGEST_HEAD = 2048  # bytes of each stream that are a fact
LARGEST_KEPT = 4 * 1024 * 1024  # bytes of each stream that become an artifact
# So much more is read before secrets are taken out, so that none is cut in two and its first half kept.
_MARGIN = 8 * 1024

Redact = Callable[[str], str]


@dataclass
class Stream:
    """What came on one stream: as much of it as is kept, its size in bytes, and a hash over all of it."""

    size: int = 0
    _beginning: bytearray = field(default_factory=bytearray)
    _hash: Any = field(default_factory=hashlib.sha256)

    def add(self, chunk: bytes) -> None:
        """Takes some more."""
        self._beginning += chunk[: LARGEST_KEPT + _MARGIN - len(self._beginning)]
        self.size += len(chunk)
        self._hash.update(chunk)

    def beginning(self, redact: Redact, *, limit: int) -> bytes:
        """At most so many bytes of it, without secrets; any byte that is no text stays as it is."""
        text = bytes(self._beginning[: limit + _MARGIN]).decode("utf-8", "surrogateescape")
        return redact(text).encode("utf-8", "surrogateescape")[:limit]

    def head(self, redact: Redact) -> str:
        """Its beginning as text that can be stored."""
        text = self.beginning(redact, limit=LARGEST_HEAD).decode("utf-8", errors="replace")
        return text.replace("\x00", "\ufffd").encode()[:LARGEST_HEAD].decode("utf-8", errors="ignore")

    def to_json(self, redact: Redact) -> Facts:
        """As a fact."""
        return {"bytes": self.size, "sha256": self._hash.hexdigest(), "head": self.head(redact)}


def keep(name: str, stream: Stream, call: Call, redact: Redact) -> Facts:
    """Stores what is kept of a stream; the members by which its fact says where. Nothing printed is nothing kept.

    The program has ended, so nothing that goes wrong here may hide how: then `not_kept` says why there is no artifact.
    """
    content = stream.beginning(redact, limit=LARGEST_KEPT)
    if not content:
        return {}
    try:
        artifact = call.artifacts.store(f"{call.step_name}.{call.attempt}.{name}.txt", _media_type(content), [content])
    except Exception as error:
        log.warning("the %s of step %s could not be kept", name, call.step_name, exc_info=error)
        return {"not_kept": f"{type(error).__name__}: {error}"[:200]}
    return {"artifact": artifact, **({"cut_to": LARGEST_KEPT} if stream.size > LARGEST_KEPT else {})}


def _media_type(content: bytes) -> str:
    """The end may be in the middle of a character."""
    text = content[:-4].decode("utf-8", errors="replace")
    return UNKNOWN_TYPE if "\x00" in text or "\ufffd" in text else "text/plain"
