"""Bytes in storage under their SHA-256: brought once however often they come, and taken away when nobody names them.

Each upload goes to a path of its own, which is written ahead as loose; once the bytes are there whole, one transaction
turns the loose path into stored bytes. So a crash at any point leaves a loose path, never bytes that no row knows, and
nothing has to search the storage. A path is never used twice: whoever takes one away cannot hit a newer upload.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from checkpoint import clock
from checkpoint.crash_points import reach
from checkpoint.errors import BytesNotKept
from checkpoint.models import LoosePath, StoredBytes
from checkpoint.transactions import one_transaction, require_transaction

log = logging.getLogger(__name__)

CHUNK = 64 * 1024  # bytes
AT_ONCE = 100  # paths that one turn of the collection takes away
_TOO_SLOW = "The upload took longer than the grace time, and its bytes are no longer kept: bring them again."


def keep(content: IO[bytes], *, sha256: str, size: int) -> None:
    """Sees to it that bytes of this hash are in storage, whole. What is there damaged is replaced (S05).

    Args:
        content: read from its beginning, outside of any transaction.

    Raises:
        BytesNotKept: the upload took longer than the grace time.
    """
    known = _bring_again(sha256)
    if known is not None and _is_whole(known, sha256):
        return
    path = _announce(sha256)
    reach("artifact/announced", sha256)
    _upload(path, content)
    reach("artifact/uploaded", sha256)
    if not _settle(sha256, size, path, instead_of=known):
        _take_away(path)


def name(sha256: str) -> None:
    """Says that an artifact's row is written in this transaction. From its commit on the bytes stay.

    Raises:
        BytesNotKept: they were taken away, because more than the grace time went by since they were brought.
    """
    require_transaction()
    if not StoredBytes.objects.filter(pk=sha256).update(named=True):
        raise BytesNotKept("The bytes were brought too long ago and are no longer kept: bring them again.")


def path_of(sha256: str) -> str:
    """Where the bytes are now."""
    return StoredBytes.objects.values_list("path", flat=True).get(pk=sha256)


def read(path: str) -> Iterator[bytes]:
    """The bytes in chunks, as they are. Raises FileNotFoundError."""
    with default_storage.open(path) as stored:
        yield from stored.chunks(CHUNK)


def collect() -> int:
    """Takes away what nobody names and nobody brought within the grace time; returns the number of paths.

    Safe at any moment, by any number of processes, after any crash.
    """
    cutoff = clock.now() - timedelta(hours=settings.CHECKPOINT_ORPHAN_GRACE_HOURS)
    doomed = _doom(cutoff)
    reach("artifact/doomed", "")
    for path in doomed:
        _take_away(path)
    return len(doomed)


@one_transaction
def _bring_again(sha256: str) -> str | None:
    """Begins the grace time anew; the path, if there are such bytes."""
    if not StoredBytes.objects.filter(pk=sha256).update(brought_at=clock.now()):
        return None
    return path_of(sha256)


@one_transaction
def _announce(sha256: str) -> str:
    path = f"{sha256[:2]}/{sha256[2:4]}/{sha256}-{uuid.uuid4().hex}"
    LoosePath.objects.create(path=path)
    return path


def _upload(path: str, content: IO[bytes]) -> None:
    content.seek(0)
    try:
        kept = default_storage.save(path, File(content))
        with suppress(NotImplementedError):  # not a file of this machine
            _to_disk(default_storage.path(kept))
    except FileNotFoundError:  # the collector took the file from under the upload
        raise BytesNotKept(_TOO_SLOW) from None
    if kept != path:
        default_storage.delete(kept)
        raise BytesNotKept(f"The storage named {path} otherwise: {kept}. It must keep names as they are given.")


def _to_disk(path: str) -> None:
    """The row says that the bytes are there: that has to hold after a power cut too."""
    for name_ in (path, os.path.dirname(path)):
        opened = os.open(name_, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@one_transaction
def _settle(sha256: str, size: int, path: str, *, instead_of: str | None) -> bool:
    """Whether the uploaded bytes are now those of the hash; somebody else's may have been first."""
    if not LoosePath.objects.filter(pk=path, doomed=False).delete()[0]:
        raise BytesNotKept(_TOO_SLOW)
    now = clock.now()
    _, made = StoredBytes.objects.get_or_create(
        pk=sha256, defaults={"size": size, "path": path, "brought_at": now}
    )  # fmt: skip
    replaced = instead_of and StoredBytes.objects.filter(pk=sha256, path=instead_of).update(path=path, brought_at=now)
    loose = instead_of if replaced else path
    if not made and loose is not None:
        LoosePath.objects.create(path=loose, since=now)
    return bool(made or replaced)


@one_transaction
def _doom(cutoff: object) -> list[str]:
    """Marks what is to go, so that no upload to it counts any more and the next run goes on after a crash here."""
    LoosePath.objects.filter(since__lt=cutoff).update(doomed=True)
    unnamed = StoredBytes.objects.filter(named=False, brought_at__lt=cutoff).select_for_update(skip_locked=True)
    for stored in unnamed[:AT_ONCE]:
        LoosePath.objects.create(path=stored.path, doomed=True)
        stored.delete()
    return list(LoosePath.objects.filter(doomed=True).order_by("since").values_list("path", flat=True)[:AT_ONCE])


def _take_away(path: str) -> None:
    """The bytes first, then what is known of them. A storage that is away is asked again the next time."""
    try:
        default_storage.delete(path)
    except Exception as error:  # every storage has errors of its own, and none of them may hold up the other paths
        log.warning("%s could not be taken away: %s", path, error)
        return
    LoosePath.objects.filter(pk=path).delete()


def _is_whole(path: str, sha256: str) -> bool:
    digest = hashlib.sha256()
    with suppress(OSError):
        for chunk in read(path):
            digest.update(chunk)
    return digest.hexdigest() == sha256
