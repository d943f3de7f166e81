"""`object.delete`: deletes one object of an S3-compatible bucket, if it still is the one with this ETag.

S3 answers a DELETE alike whether there was anything or not, so the tool looks first: "already gone" and "we deleted it"
are different receipts. Recovery: the object with this ETag still there means that nothing happened; none there, that it
is gone, and by whom is not told; another one, that a person is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkpoint.contracts import Variant
from checkpoint.crash_points import reach
from checkpoint.outcomes import (
    Absent,
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
from workers.tools.object_arguments import DeleteArguments
from workers.tools.object_buckets import UNLISTED, BucketList
from workers.tools.object_store import Store, Stored
from workers.tools.secrets import Secrets


class ObjectDelete:
    """One instance serves all calls and keeps nothing between them."""

    name = "object.delete"
    version = "1"
    summary = "Deletes an object of an allowed bucket"
    Arguments = DeleteArguments
    reports_sending = True

    def __init__(self, buckets: BucketList | None = None, secrets: Secrets | None = None) -> None:
        self._given = buckets
        self._secrets = secrets or Secrets()

    def variants(self) -> Sequence[Variant]:
        """By bucket: a versioned one keeps what was deleted."""
        buckets = self._buckets().buckets.values()
        return [*(Variant(bucket.name, bucket.deleting(), bucket.when()) for bucket in buckets), UNLISTED]

    def execute(self, arguments: DeleteArguments, call: Call) -> Receipt:
        """Looks first, then deletes under the condition.

        Raises:
            NotApplied: nothing was sent, the store refused it, or another object lies there.
            StoreSilent: nobody knows.
        """
        store = self._store(arguments, call)
        there = store.look()
        if there is None:
            return _receipt(arguments, "already_gone")
        if there.etag != arguments.etag:
            raise _changed(arguments, there)
        known = store.delete(etag=arguments.etag)
        reach("object.delete/answered", call.step_name)
        marker = known["marker"]
        return _receipt(arguments, "deleted", operation_id=marker, marker=marker, version=there.version)

    def inspect(self, arguments: DeleteArguments, call: Call) -> Inspection:
        """Whether the object with this ETag is there."""
        try:
            there = self._store(arguments, call).look()
        except Exception as error:
            return Inconclusive(f"the store cannot be asked: {error}")
        if there is None:
            return Found(_receipt(arguments, "gone"))
        if there.etag == arguments.etag:
            return Absent({"etag": there.etag})
        facts = {"bucket": arguments.bucket, "key": arguments.key, "etag": there.etag, "version": there.version}
        return Found(Receipt(facts=facts, arguments_match=False))

    def verify(self, arguments: DeleteArguments, call: Call) -> Verification:
        """Tries to read the object's bytes, where the deletion went by what HEAD said."""
        try:
            found = self._store(arguments, call).read()
        except Exception as error:
            return NotVisible(f"reading failed: {error}")
        if found is None:
            return Visible({"key": arguments.key, "gone": True})
        there, _ = found
        if there.etag != arguments.etag:
            return Visible({"key": arguments.key, "gone": True, "now_there": there.etag})
        return NotVisible(f"the object {arguments.key} is still there", {"etag": there.etag})

    def _buckets(self) -> BucketList:
        return self._given or object_buckets.load()

    def _store(self, arguments: DeleteArguments, call: Call) -> Store:
        return Store(self._buckets().bucket(arguments.bucket), arguments.key, self._secrets, call)


def _changed(arguments: DeleteArguments, there: Stored) -> NotApplied:
    message = f"nothing was deleted: {arguments.key} is another object by now, with the ETag {there.etag}"
    return NotApplied(message, code="changed", permanent=True)


def _receipt(arguments: DeleteArguments, outcome: str, *, operation_id: str = "", **more: str) -> Receipt:
    """The outcome is `deleted`, `already_gone` before we did anything, or `gone`, by whom is not told."""
    facts = {"bucket": arguments.bucket, "key": arguments.key, "etag": arguments.etag, "outcome": outcome, **more}
    return Receipt(operation_id=operation_id or arguments.etag, facts=facts)
