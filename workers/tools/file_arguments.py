"""The arguments of `file.write`, and the bytes that they stand for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from checkpoint.outcomes import NotApplied
from workers.call_artifacts import ArtifactReference
from workers.registry import Call

LARGEST = 10 * 1024 * 1024  # bytes; what is larger is an artifact
CHUNK = 64 * 1024  # bytes
# Names that begin like this are the tool's own: drafts, and the folder of notes.
OURS = ".checkpoint-"

_NAME = rf"(?!\.{{1,2}}(?:/|$))(?!{OURS.replace('.', '[.]')})[^/\\\x00-\x1f\x7f]{{1,128}}"
_PATH = rf"^{_NAME}(?:/{_NAME}){{0,15}}$(?!\n)"
_PATH_WORDS = 'a path like "reports/2026-11.txt": relative, "/" between its parts, no "..", no control characters'
FilePath = Annotated[str, Field(pattern=_PATH, max_length=512, json_schema_extra={"x-must-be": _PATH_WORDS})]
_TEXT_UNLESS_JSON: dict[str, Any] = {
    "if": {"properties": {"encoding": {"const": "json"}}, "required": ["encoding"]},
    "else": {"properties": {"content": {"type": "string", "maxLength": LARGEST * 4 // 3 + 4}}},
}
_BODY_OR_CONTENT: dict[str, Any] = {
    "if": {"properties": {"body": {"type": "object"}}, "required": ["body"]},
    "then": {"properties": {"content": {"const": None}, "encoding": {"const": "utf-8"}}},
    "else": {"required": ["content"], **_TEXT_UNLESS_JSON},
}


class FileArguments(BaseModel):
    """What to write and where: a path below the workers' folder, with "/" between its parts.

    The content is text, or bytes as base64, or with `json` any value, whose text is then written. In such a value
    references to earlier results can stand at any place. What is large stands in `body`, as an artifact.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, regex_engine="python-re", json_schema_extra=_BODY_OR_CONTENT
    )

    path: FilePath
    content: JsonValue = None
    body: ArtifactReference | None = None
    encoding: Literal["utf-8", "base64", "json"] = "utf-8"
    mode: Literal["overwrite", "if_absent"] = "overwrite"


@dataclass(frozen=True)
class Content:
    """Bytes to write, in chunks, with their SHA-256 as 64 hexadecimal digits and their number."""

    chunks: Iterable[bytes]
    sha256: str
    size: int


@contextmanager
def content_of(arguments: FileArguments, call: Call) -> Iterator[Content]:
    """The bytes to write; those of an artifact are held against its hash before there is a first of them.

    Raises:
        NotApplied: they cannot be made from the arguments, are too many, or are lost or damaged.
    """
    if arguments.body is None:
        written = _written_out(arguments)
        yield Content([written], hashlib.sha256(written).hexdigest(), len(written))
        return
    with call.artifacts.open(arguments.body) as file:
        yield Content(iter(partial(file.read, CHUNK), b""), arguments.body.sha256, call.artifacts.size(arguments.body))


def wanted_sha256(arguments: FileArguments) -> str:
    """What the file is to be, without its bytes. Raises NotApplied where the arguments stand for none."""
    return arguments.body.sha256 if arguments.body else hashlib.sha256(_written_out(arguments)).hexdigest()


def _written_out(arguments: FileArguments) -> bytes:
    try:
        content = _encoded(arguments.content, arguments.encoding)
    except (binascii.Error, UnicodeEncodeError, TypeError) as error:
        message = f"nothing was written: the content is not {arguments.encoding}: {error}"
        raise NotApplied(message, code="content_refused", permanent=True) from None
    if len(content) > LARGEST:
        message = f"nothing was written: the content has {len(content)} bytes, the limit is {LARGEST}"
        raise NotApplied(message, code="content_refused", permanent=True)
    return content


def _encoded(content: JsonValue, encoding: str) -> bytes:
    if encoding == "json":
        # Sorted and indented: the same value has the same bytes at every attempt, and a person can read them.
        return (json.dumps(content, ensure_ascii=False, sort_keys=True, indent=2) + "\n").encode()
    if not isinstance(content, str):
        raise TypeError("it is no text")
    return base64.b64decode(content.encode(), validate=True) if encoding == "base64" else content.encode()
