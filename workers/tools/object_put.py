"""`object.put`: stores one object in an S3-compatible bucket, new or in the place of one that is named by its ETag.

Recovery. Every object that we put carries the step's key and its own SHA-256 in its metadata. So a HEAD tells whose
object lies there: ours means that the effect is there; none, or still the one to replace, that it is not; any other is
a question to a person. Where the store honours conditions, a second PUT can meet only our own object, never replace
somebody else's. Where it does not, that window is looked through once more immediately before the PUT, and stays.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from checkpoint.contracts import Variant
from checkpoint.crash_points import reach
from checkpoint.outcomes import (
    Absent,
    Facts,
    Found,
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Receipt,
    Verification,
    Visible,
)
from workers.registry import Call
from workers.tools import object_buckets
from workers.tools.object_arguments import PutArguments
from workers.tools.object_buckets import UNLISTED, BucketList
from workers.tools.object_store import Body, ConditionFailed, Store, Stored
from workers.tools.secrets import Secrets


class ObjectPut:
    """One instance serves all calls and keeps nothing between them."""

    name = "object.put"
    version = "1"
    summary = "Stores an object in an allowed bucket"
    Arguments = PutArguments
    reports_sending = True

    def __init__(self, buckets: BucketList | None = None, secrets: Secrets | None = None) -> None:
        self._given = buckets
        self._secrets = secrets or Secrets()

    def variants(self) -> Sequence[Variant]:
        """By bucket, and by whether something is replaced."""
        replacing = {"properties": {"mode": {"const": "replace"}}, "required": ["mode"]}
        found = []
        for bucket in self._buckets().buckets.values():
            found.append(Variant(f"{bucket.name}: replace", bucket.replacing(), {"allOf": [bucket.when(), replacing]}))
            found.append(Variant(f"{bucket.name}: create", bucket.creating(), bucket.when()))
        return [*found, UNLISTED]

    def execute(self, arguments: PutArguments, call: Call) -> Receipt:
        """Looks first, then sends under the condition.

        Raises:
            NotApplied: nothing was sent, the store refused it, or another object lies there than the arguments allow.
            StoreSilent: nobody knows.
        """
        store = self._store(arguments, call)
        with _body(arguments, call) as body:
            there = store.look()
            if there is not None and there.owner == call.key and there.sha256 == body.sha256:
                return _receipt(arguments, there)
            _require_place(arguments, there)
            try:
                known = store.put(body, arguments.content_type, etag=arguments.etag)
            except ConditionFailed:
                return self._after_refusal(store, arguments, call, body)
            reach("object.put/answered", call.step_name)
            return _receipt(arguments, Stored(**known, size=body.size, owner=call.key, sha256=body.sha256))

    def inspect(self, arguments: PutArguments, call: Call) -> Inspection:
        """Whose object lies there, by its metadata."""
        try:
            there = self._store(arguments, call).look()
            wanted = _sha256(arguments)
        except Exception as error:
            return Inconclusive(f"the store cannot be asked: {error}")
        if there is None:
            return Absent() if arguments.mode == "create" else Inconclusive(_gone(arguments))
        if there.owner == call.key:
            return Found(_receipt(arguments, there, match=there.sha256 == wanted))
        if arguments.mode == "replace" and there.etag == arguments.etag:
            return Absent({"etag": there.etag})
        return Found(_receipt(arguments, there, match=False))

    def verify(self, arguments: PutArguments, call: Call) -> Verification:
        """Reads the object's bytes and compares their hash; the metadata's word is not enough."""
        try:
            found = self._store(arguments, call).read()
        except Exception as error:
            return NotVisible(f"reading failed: {error}")
        if found is None:
            return NotVisible(f"there is no object {arguments.key}")
        there, sha256 = found
        facts = {"etag": there.etag, "version": there.version, "sha256": sha256, "size": there.size}
        if sha256 != _sha256(arguments):
            return NotVisible(f"the object {arguments.key} has other bytes", facts)
        return Visible(facts)

    def _buckets(self) -> BucketList:
        return self._given or object_buckets.load()

    def _store(self, arguments: PutArguments, call: Call) -> Store:
        return Store(self._buckets().bucket(arguments.bucket), arguments.key, self._secrets, call)

    def _after_refusal(self, store: Store, arguments: PutArguments, call: Call, body: Body) -> Receipt:
        """The condition did not hold: an earlier request of ours may have been first."""
        there = store.look()
        if there is not None and there.owner == call.key and there.sha256 == body.sha256:
            return _receipt(arguments, there)
        _require_place(arguments, there)
        raise NotApplied("nothing was stored: the store's condition did not hold", code="condition_failed")


def _require_place(arguments: PutArguments, there: Stored | None) -> None:
    """Raises NotApplied unless what lies there is what the arguments say."""
    if arguments.mode == "create" and there is not None:
        message = f"nothing was stored: there is an object {arguments.key} already, with the ETag {there.etag}"
        raise NotApplied(message, code="exists", permanent=True)
    if arguments.mode == "replace" and (there is None or there.etag != arguments.etag):
        is_there = "there is none" if there is None else f"it has the ETag {there.etag}"
        message = f"nothing was stored: {arguments.key} is not the object to replace, {is_there}"
        raise NotApplied(message, code="changed", permanent=True)


def _gone(arguments: PutArguments) -> str:
    return f"{arguments.key} is gone: deleted since, or before this call came to it"


@contextmanager
def _body(arguments: PutArguments, call: Call) -> Iterator[Body]:
    """The bytes to send, an artifact's held against their hash. Raises NotApplied where they are not to be had."""
    if isinstance(arguments.body, str):
        content = arguments.body.encode()
        yield Body(io.BytesIO(content), hashlib.sha256(content).hexdigest(), len(content))
        return
    with call.artifacts.open(arguments.body) as file:
        yield Body(file, arguments.body.sha256, call.artifacts.size(arguments.body))


def _sha256(arguments: PutArguments) -> str:
    if isinstance(arguments.body, str):
        return hashlib.sha256(arguments.body.encode()).hexdigest()
    return arguments.body.sha256


def _receipt(arguments: PutArguments, there: Stored, *, match: bool = True) -> Receipt:
    facts: Facts = {
        "bucket": arguments.bucket,
        "key": arguments.key,
        "etag": there.etag,
        "version": there.version,
        "sha256": there.sha256,
        "size": there.size,
    }
    return Receipt(operation_id=there.version or there.etag, facts=facts, arguments_match=match)
