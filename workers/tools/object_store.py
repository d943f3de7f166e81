"""One S3-compatible bucket over the network: each request is tried once, under the call's deadline.

What an answer proves is decided here. A condition that did not hold (412) means that the request was not carried out
(RFC 9110, section 13.2.1), and so do the error codes in REFUSALS, by which S3 rejects a request before it acts. Nothing
else does: not 500, not 503, not 409, not a connection that broke.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import IO, Any

from checkpoint.outcomes import Facts, NotApplied, Unanswered
from workers.registry import Call
from workers.tools.object_arguments import full_key
from workers.tools.object_buckets import Bucket
from workers.tools.secrets import Secrets

CHUNK = 64 * 1024  # bytes
CONNECT_SECONDS = 5.0
KEY, SHA256 = "checkpoint-key", "checkpoint-sha256"  # metadata of every object that we put

REFUSALS = frozenset({
    "AccessDenied", "BadDigest", "EntityTooLarge", "InvalidAccessKeyId", "InvalidBucketName", "InvalidDigest",
    "KeyTooLongError", "NoSuchBucket", "PreconditionFailed", "RequestTimeTooSkewed", "SignatureDoesNotMatch",
    "XAmzContentSHA256Mismatch",
})  # fmt: skip


class StoreSilent(Unanswered):
    """The store did not answer, or with what proves nothing; the message says what is known."""


class ConditionFailed(NotApplied):
    """Another object lies there than the condition allows, or none: nothing was changed by this request."""


@dataclass(frozen=True)
class Stored:
    """An object as the store describes it.

    Attributes:
        etag: without quotation marks.
        sha256: as whoever put it wrote it into the metadata; empty where it was none of ours.
        owner: the step's key in the metadata; empty where it was none of ours.
    """

    etag: str
    size: int
    version: str
    owner: str
    sha256: str


@dataclass(frozen=True)
class Body:
    """What is sent: a file, read from its beginning, its SHA-256 in hexadecimal digits, and its size in bytes."""

    file: IO[bytes]
    sha256: str
    size: int


class Store:
    """One object of a bucket, for one call."""

    def __init__(self, bucket: Bucket, key: str, secrets: Secrets, call: Call) -> None:
        self._bucket, self._call, self._secrets = bucket, call, secrets
        self._place = {"Bucket": bucket.bucket, "Key": full_key(bucket.prefix, key)}
        self._client = _client(bucket, secrets, call.deadline.remaining())

    def look(self) -> Stored | None:
        """What lies there, by HEAD; None where nothing does."""
        with self._answered(reading=True):
            try:
                return _stored(self._client.head_object(**self._place))
            except self._client.exceptions.ClientError as error:
                if _status(error) == 404:
                    return None
                raise

    def read(self) -> tuple[Stored, str] | None:
        """What lies there and the SHA-256 of its bytes, by GET; None where nothing does."""
        with self._answered(reading=True):
            try:
                answer = self._client.get_object(**self._place)
            except self._client.exceptions.NoSuchKey:
                return None
            digest = hashlib.sha256()
            for chunk in answer["Body"].iter_chunks(CHUNK):
                self._in_time()
                digest.update(chunk)
            return _stored(answer), digest.hexdigest()

    def put(self, body: Body, content_type: str, *, etag: str | None) -> Facts:
        """Stores the body under the condition, as far as the store honours conditions; what is known of it then.

        Raises:
            ConditionFailed: there is an object already, or not the one with this ETag.
            NotApplied: nothing was sent, or it was refused.
            StoreSilent: nobody knows.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": f'"{etag}"'}
        with self._answered():
            answer = self._client.put_object(
                **self._place,
                **(condition if self._bucket.conditional_writes else {}),
                Body=_Timely(body.file, self._in_time),
                ContentLength=body.size,
                ContentType=content_type,
                ChecksumSHA256=base64.b64encode(bytes.fromhex(body.sha256)).decode(),
                Metadata={KEY: self._call.key, SHA256: body.sha256},
            )
        return {"etag": _unquoted(answer), "version": answer.get("VersionId", "")}

    def delete(self, *, etag: str) -> Facts:
        """Deletes the object with this ETag; the id of the delete marker in a versioned bucket. Raises as `put`."""
        condition = {"IfMatch": f'"{etag}"'} if self._bucket.conditional_deletes else {}
        with self._answered():
            answer = self._client.delete_object(**self._place, **condition)
        return {"marker": answer.get("VersionId", "") if answer.get("DeleteMarker") else ""}

    def _in_time(self) -> None:
        if self._call.deadline.remaining() <= 0:
            raise StoreSilent("the call's deadline passed while bytes were under way")

    @contextmanager
    def _answered(self, *, reading: bool = False) -> Iterator[None]:
        """Says for each way in which a request can fail what it proves, without a secret in the words."""
        from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

        if not reading:
            self._client.meta.events.register("before-send.s3", self._sending)
        try:
            yield
        except ClientError as error:
            raise self._judged(error) from None
        except (ConnectTimeoutError, EndpointConnectionError) as error:
            raise NotApplied(self._words(f"nothing was sent: {error}"), code="store_unreachable") from None
        except BotoCoreError as error:
            raise StoreSilent(self._words(f"{type(error).__name__}: {error}")) from None

    def _sending(self, **kwargs: Any) -> None:
        """The request is signed and the next thing is its first byte."""
        self._call.sending()

    def _judged(self, error: Any) -> Exception:
        code = str(error.response.get("Error", {}).get("Code", ""))
        words = self._words(f"{self._bucket.name} answered {_status(error)} {code}: {error}")
        if _status(error) == 412:
            return ConditionFailed(words, code="condition_failed", permanent=True)
        if code in REFUSALS:
            return NotApplied(words, code=code.lower()[:40], permanent=False)
        return StoreSilent(words)

    def _words(self, message: str) -> str:
        return str(self._secrets.redact(message))


class _Timely:
    """A file whose reading ends with the call's deadline."""

    def __init__(self, file: IO[bytes], check: Callable[[], None]) -> None:
        self._file, self._check = file, check

    def read(self, size: int = -1) -> bytes:
        self._check()
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _client(bucket: Bucket, secrets: Secrets, seconds: float) -> Any:
    """A client that tries once and gives up in time: it waits for an answer no longer than half of what is left."""
    session = _session()
    from botocore.config import Config

    config = Config(
        retries={"total_max_attempts": 1},
        connect_timeout=max(min(CONNECT_SECONDS, seconds / 4), 0.1),
        read_timeout=max(seconds / 2, 0.1),
        s3={"addressing_style": bucket.addressing},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        proxies={},
    )
    with _making_clients:
        return session.client(
            "s3",
            endpoint_url=bucket.endpoint or None,
            region_name=bucket.region,
            aws_access_key_id=secrets.value(bucket.access_key),
            aws_secret_access_key=secrets.value(bucket.secret_key),
            config=config,
        )


_making_clients = threading.Lock()  # a session makes one at a time


@cache
def _session() -> Any:
    """One for the process: it keeps the description of S3, whose reading takes longest.

    Raises NotApplied where boto3 is not installed.
    """
    try:
        import boto3
    except ImportError:
        message = "nothing was sent: boto3 is not installed on this worker; pip install 'checkpoint[s3]'"
        raise NotApplied(message, code="not_installed", permanent=True) from None
    return boto3.session.Session()


def _stored(answer: dict[str, Any]) -> Stored:
    metadata = answer.get("Metadata", {})
    return Stored(
        etag=_unquoted(answer),
        size=answer["ContentLength"],
        version=answer.get("VersionId", ""),
        owner=metadata.get(KEY, ""),
        sha256=metadata.get(SHA256, ""),
    )


def _unquoted(answer: dict[str, Any]) -> str:
    return str(answer.get("ETag", "")).strip('"')


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
