"""Reads a submitted document, JSON or YAML, into JSON values, with every fault at its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from checkpoint import canonical
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.planning.yaml_reader import read_yaml

LARGEST_DOCUMENT = 8 * 1024 * 1024  # bytes

Format = Literal["json", "yaml"]


@dataclass(frozen=True)
class Document:
    """What was read.

    Attributes:
        value: JSON values; where there are faults, with a stand-in at each faulty place, so that the rest can still
            be looked at.
    """

    value: Any
    faults: list[Fault] = field(default_factory=list)

    @classmethod
    def of(cls, value: Any) -> Document:
        """A document that something else has parsed already."""
        return cls(value, canonical.faults_in(value))


def read_document(data: bytes, format: Format) -> Document:
    """Reads UTF-8 bytes, with or without a byte order mark.

    Raises:
        SubmissionInvalid: over 8 MiB (refused unread), not UTF-8, or not JSON or YAML at all.
    """
    if len(data) > LARGEST_DOCUMENT:
        raise _unreadable(f"the document has {len(data)} bytes; the limit is {LARGEST_DOCUMENT} (8 MiB)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(f"not UTF-8: byte {error.start} cannot be read; save the file as UTF-8") from error
    value, faults = read_yaml(text, LARGEST_DOCUMENT) if format == "yaml" else canonical.read(text)
    if value is None:
        raise SubmissionInvalid(faults or [Fault("", "the document is empty; a workflow was expected")])
    return Document(value, faults)


def format_of(name: str, data: bytes) -> Format:
    """The format that a file's name tells; without a telling name, what begins like JSON is JSON."""
    if name.lower().endswith((".yaml", ".yml")):
        return "yaml"
    return "json" if name.lower().endswith(".json") or data.lstrip()[:1] in (b"{", b"[") else "yaml"


def _unreadable(message: str) -> SubmissionInvalid:
    return SubmissionInvalid([Fault("", message)])
