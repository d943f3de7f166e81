"""The arguments of `file.write`, and the bytes that they stand for."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from checkpoint.outcomes import NotApplied

LARGEST = 10 * 1024 * 1024  # bytes
# Names that begin like this are the tool's own: drafts, and the folder of notes.
OURS = ".checkpoint-"

_NAME = rf"(?!\.{{1,2}}(?:/|$))(?!{OURS.replace('.', '[.]')})[^/\\\x00-\x1f\x7f]{{1,128}}"
_PATH = rf"^{_NAME}(?:/{_NAME}){{0,15}}$(?!\n)"
_PATH_WORDS = 'a path like "reports/2026-11.txt": relative, "/" between its parts, no "..", no control characters'
FilePath = Annotated[str, Field(pattern=_PATH, max_length=512, json_schema_extra={"x-must-be": _PATH_WORDS})]
_TEXT_UNLESS_JSON: JsonDict = {
    "if": {"properties": {"encoding": {"const": "json"}}, "required": ["encoding"]},
    "else": {"properties": {"content": {"type": "string", "maxLength": LARGEST * 4 // 3 + 4}}},
}


class FileArguments(BaseModel):
    """What to write and where: a path below the workers' folder, with "/" between its parts.

    The content is text, or bytes as base64, or with `json` any value, whose text is then written. In such a value
    references to earlier results can stand at any place.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, regex_engine="python-re", json_schema_extra=_TEXT_UNLESS_JSON
    )

    path: FilePath
    content: JsonValue
    encoding: Literal["utf-8", "base64", "json"] = "utf-8"
    mode: Literal["overwrite", "if_absent"] = "overwrite"


def content_of(arguments: FileArguments) -> bytes:
    """The bytes to write.

    Raises:
        NotApplied: they cannot be made from the arguments, or are too many.
    """
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
