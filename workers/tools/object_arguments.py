"""The arguments of `object.put` and `object.delete`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from checkpoint.outcomes import NotApplied
from workers.call_artifacts import ArtifactReference

LARGEST_KEY = 1024  # bytes of UTF-8, prefix included; the limit of S3
BUCKET_NAME = r"^[a-z][a-z0-9-]{0,31}$"

# No "." and "..": clients and proxies shorten them on the way, and the request would go to another key.
_PART = r"(?!\.{1,2}(?:/|$))[^/\x00-\x1f\x7f]+"
_KEY = rf"^{_PART}(?:/{_PART})*$(?!\n)"
_KEY_WORDS = 'a key like "reports/2026-11.txt": parts with "/" between them, none of them ".." or empty'
_ETAG_WORDS = 'an ETag as the store gives it, like "5d41402abc4b2a76b9719d911017c592", without the quotation marks'
_REPLACING: JsonDict = {
    "if": {"properties": {"mode": {"const": "replace"}}, "required": ["mode"]},
    "then": {"required": ["etag"], "properties": {"etag": {"type": "string"}}},
    "else": {"properties": {"etag": {"type": "null"}}},
}

BucketName = Annotated[str, Field(pattern=BUCKET_NAME)]
Key = Annotated[str, Field(pattern=_KEY, max_length=LARGEST_KEY, json_schema_extra={"x-must-be": _KEY_WORDS})]
ETag = Annotated[str, Field(pattern=r"^[!#-~]{1,200}$", json_schema_extra={"x-must-be": _ETAG_WORDS})]


class PutArguments(BaseModel):
    """What to store where: a bucket of the operator's list, and a key in it.

    The body is text, or an artifact of the workflow. `create` wants the key to be free; `replace` wants the object
    there to be the one with this ETag. There is no writing over whatever is there: after a crash nobody could tell
    whether a newer object would be lost.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, regex_engine="python-re", json_schema_extra=_REPLACING
    )

    bucket: BucketName
    key: Key
    body: str | ArtifactReference
    content_type: Annotated[str, Field(pattern=r"^[!-~][ -~]{0,199}$")] = "application/octet-stream"
    mode: Literal["create", "replace"] = "create"
    etag: ETag | None = None


class DeleteArguments(BaseModel):
    """Which object to delete: the one at the key, if it still is the one with this ETag."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, regex_engine="python-re")

    bucket: BucketName
    key: Key
    etag: ETag


def full_key(prefix: str, key: str) -> str:
    """The key as the store knows it. Raises NotApplied where it is too long."""
    full = prefix + key
    if len(full.encode()) > LARGEST_KEY:
        message = f"nothing was sent: the key has more than {LARGEST_KEY} bytes, with the bucket's prefix"
        raise NotApplied(message, code="key_refused", permanent=True)
    return full
