"""The operator's list of buckets: where each is, whose credentials open it, and what its store can be relied on for.

Arguments name an entry and nothing else: an agent chooses neither address nor credentials, and cannot promise for a
store that it honours conditions.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import Field, ValidationError

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.outcomes import NotApplied
from workers.tools.http_arguments import Model, SecretName
from workers.tools.object_arguments import BUCKET_NAME

SETTING = "CHECKPOINT_BUCKETS"
DEFAULT_FILE = "deploy/buckets.toml"


class Bucket(Model):
    """One entry of the file. All times are seconds.

    Attributes:
        name: what arguments call it.
        bucket: what the store calls it.
        endpoint: where the store is; left out for Amazon's own.
        prefix: put before every key, so that nothing outside of it can be reached.
        access_key, secret_key: names of the two secrets.
        conditional_writes: a PUT with If-None-Match or If-Match is refused unless the condition holds, atomically.
        conditional_deletes: the same for a DELETE with If-Match.
        versioned: the store keeps what was replaced or deleted.
        settle_seconds: how much later than its deadline a request can land, and a reading lag behind.
    """

    name: Annotated[str, Field(pattern=BUCKET_NAME)]
    bucket: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    endpoint: Annotated[str, Field(pattern=r"^(?:https?://[!-~]+)?$")] = ""
    region: str = "us-east-1"
    addressing: Literal["auto", "path", "virtual"] = "auto"
    prefix: Annotated[str, Field(max_length=200)] = ""
    access_key: SecretName
    secret_key: SecretName
    conditional_writes: bool = False
    conditional_deletes: bool = False
    versioned: bool = False
    deadline_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    settle_seconds: Annotated[float, Field(ge=0)] = 5.0
    where_to_look: str = ""
    link: Annotated[str, Field(pattern=r"^(?:https?://[!-~]*)?$")] = ""

    def creating(self) -> Contract:
        """Of a PUT to a key that must be free. With conditions the same call again can only find its own object."""
        recovery = RecoveryClass.IDEMPOTENT if self.conditional_writes else RecoveryClass.QUERYABLE
        return self._contract(recovery, Reversibility.COMPENSABLE)

    def replacing(self) -> Contract:
        """Of a PUT over an object that is named by its ETag. An ETag can come back, so it is looked up, not resent."""
        return self._contract(RecoveryClass.QUERYABLE, self._kept())

    def deleting(self) -> Contract:
        """Of a DELETE of an object that is named by its ETag."""
        return self._contract(RecoveryClass.QUERYABLE, self._kept())

    def when(self) -> dict[str, Any]:
        """JSON Schema of the arguments that name this bucket."""
        return {"properties": {"bucket": {"const": self.name}}, "required": ["bucket"]}

    def _kept(self) -> Reversibility:
        return Reversibility.COMPENSABLE if self.versioned else Reversibility.IRREVERSIBLE

    def _contract(self, recovery: RecoveryClass, reversibility: Reversibility) -> Contract:
        look = f"Look at the object in the bucket {self.bucket}: its metadata checkpoint-key holds the step's key."
        return Contract(
            recovery=recovery,
            reversibility=reversibility,
            deadline=self.deadline_seconds,
            settle=self.settle_seconds,
            concurrent_same_key_safe=recovery is RecoveryClass.IDEMPOTENT,
            can_inspect=True,
            can_verify=True,
            where_to_look=self.where_to_look or look,
            link=self.link,
            facts=("bucket", "key", "etag", "version", "sha256", "size", "outcome", "gone"),
        )


# Every set of arguments has a contract. For a bucket that is on no list, nothing is ever sent.
UNLISTED = Variant(
    name="unlisted",
    contract=Contract(
        recovery=RecoveryClass.OPAQUE,
        reversibility=Reversibility.IRREVERSIBLE,
        where_to_look=f"Nowhere: this bucket is not on the list ({SETTING}), so nothing is ever sent to it.",
    ),
)


class BucketList:
    """The buckets, by what arguments call them."""

    def __init__(self, buckets: Iterable[Bucket]) -> None:
        self.buckets = {bucket.name: bucket for bucket in buckets}

    def bucket(self, name: str) -> Bucket:
        """Raises NotApplied where the list has none of that name."""
        if name not in self.buckets:
            known = ", ".join(sorted(self.buckets)) or "none"
            message = f"nothing was sent: the list of buckets ({SETTING}) has no {name!r}; it has {known}"
            raise NotApplied(message, code="bucket_unlisted", permanent=True)
        return self.buckets[name]


class BucketsFileInvalid(Exception):
    """The operator's file cannot be used; the message names the file and the entry."""


@lru_cache(maxsize=8)
def load(path: Path | None = None) -> BucketList:
    """The list in a file, or in the one that CHECKPOINT_BUCKETS names, once per process.

    Raises:
        BucketsFileInvalid: the file is missing, is not TOML, or an entry is wrong.
    """
    file = path or settings.BASE_DIR / (os.environ.get(SETTING) or DEFAULT_FILE)
    try:
        with file.open("rb") as opened:
            content = tomllib.load(opened)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BucketsFileInvalid(f"{file} ({SETTING}): {error}") from error
    entries = content.pop("bucket", [])
    if content or not isinstance(entries, list):
        raise BucketsFileInvalid(f"{file}: every entry starts with [[bucket]]; {sorted(content)} is unknown")
    buckets = [_read(file, number, entry) for number, entry in enumerate(entries, 1)]
    if len({bucket.name for bucket in buckets}) < len(buckets):
        raise BucketsFileInvalid(f"{file}: two [[bucket]] have one name")
    return BucketList(buckets)


def _read(file: Path, number: int, entry: Any) -> Bucket:
    try:
        return Bucket.model_validate(entry)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise BucketsFileInvalid(f"{file}: [[bucket]] number {number}: {faults}") from None
