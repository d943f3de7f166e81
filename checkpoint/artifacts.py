"""Large things: bytes in object storage under their SHA-256, and a row that says what they must be.

The bytes are stored first and the row after them, so a crash between the two leaves bytes that nobody names, and never
a row without its bytes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage

from checkpoint import audit, clock
from checkpoint.errors import ArtifactTooLarge, RecordDamaged
from checkpoint.models import Artifact, Workflow
from checkpoint.people import Actor
from checkpoint.transactions import one_transaction, require_transaction

CHUNK = 64 * 1024  # bytes
IN_MEMORY = 1024 * 1024  # bytes; what is larger passes through a temporary file


def store(workflow: Workflow, name: str, media_type: str, chunks: Iterable[bytes], *, actor: Actor) -> Artifact:
    """Stores the bytes and then the row. The same bytes are kept once, whatever they are called.

    Raises:
        ArtifactTooLarge: more than CHECKPOINT_LARGEST_ARTIFACT bytes; reading stops there, and nothing is stored.
    """
    kept = keep_bytes(chunks, largest=settings.CHECKPOINT_LARGEST_ARTIFACT)
    return _record(Artifact(workflow=workflow, name=name, media_type=media_type, **vars(kept)), actor)


@dataclass(frozen=True)
class Kept:
    """Bytes that are in storage and that no row names yet. `size` is in bytes."""

    sha256: str
    size: int


def keep_bytes(chunks: Iterable[bytes], *, largest: int) -> Kept:
    """Stores bytes, outside of any transaction, for an artifact whose row a verb then writes.

    Raises:
        ArtifactTooLarge: more than `largest` bytes; reading stops there, and nothing is stored.
    """
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as draft:
        sha256, size = _copy(chunks, draft, largest=largest)
        draft.seek(0)
        _put(sha256, draft)
    return Kept(sha256, size)


@contextmanager
def open_verified(artifact: Artifact) -> Iterator[IO[bytes]]:
    """The artifact's bytes, read completely and held against the row before the caller sees the first of them.

    Raises:
        RecordDamaged: the bytes are gone, or are not those that were stored.
    """
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as checked:
        if _read(artifact, checked) != (artifact.sha256, artifact.size):
            raise RecordDamaged(f"The bytes of artifact {artifact.pk} ({artifact.name}) do not match their SHA-256.")
        checked.seek(0)
        yield checked


def _read(artifact: Artifact, target: IO[bytes]) -> tuple[str, int] | None:
    """SHA-256 and size of what is stored; None when there is more than there should be."""
    try:
        with default_storage.open(_path(artifact.sha256)) as stored:
            return _copy(stored.chunks(CHUNK), target, largest=artifact.size)
    except ArtifactTooLarge:
        return None
    except FileNotFoundError:
        raise RecordDamaged(f"The bytes of artifact {artifact.pk} ({artifact.name}) are gone from storage.") from None


def _copy(chunks: Iterable[bytes], target: IO[bytes], *, largest: int) -> tuple[str, int]:
    """Copies and returns SHA-256 and size."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > largest:
            raise ArtifactTooLarge(
                f"The artifact has more than {largest} bytes; store it in parts, or raise the limit."
            )
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest(), size


def _path(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}"


def _put(sha256: str, content: IO[bytes]) -> None:
    """Puts the bytes where their hash says, unless they are there: what a crash left half written is replaced."""
    path = _path(sha256)
    if default_storage.exists(path):
        if _is_whole(path, sha256):
            return
        default_storage.delete(path)
    kept = default_storage.save(path, File(content))
    if kept != path:
        # Somebody else stored the same bytes meanwhile, and the storage gave ours another name.
        default_storage.delete(kept)


def _is_whole(path: str, sha256: str) -> bool:
    digest = hashlib.sha256()
    with default_storage.open(path) as stored:
        for chunk in stored.chunks(CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == sha256


@one_transaction
def _record(artifact: Artifact, actor: Actor) -> Artifact:
    insert(artifact, actor=actor, at=clock.now())
    return artifact


def insert(artifact: Artifact, *, actor: Actor, at: datetime) -> None:
    """Stores the row of an artifact whose bytes are kept, and audits it."""
    require_transaction()
    artifact.save(force_insert=True)
    entry = audit.Entry(
        stream=artifact.workflow_id,
        actor=actor,
        verb="keep",
        subject=f"artifact {artifact.name}",
        details={"artifact": str(artifact.pk), "sha256": artifact.sha256, "size": artifact.size},
    )
    audit.append([entry], at=at)
