"""Large things: a row that says what they are, and bytes in storage that are held against it at every read.

The bytes are kept first (`stored_bytes`) and the row is written after them, so a crash between the two leaves bytes
that nobody names, which `stored_bytes.collect` takes away, and never a row without its bytes.

Who sees the workflow sees its artifacts, by id. By hash they are found within their own workflow only: whether another
team has the same bytes, nobody can ask.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import IO
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Sum

from checkpoint import audit, reasons, transitions
from checkpoint.crash_points import reach
from checkpoint.errors import ActionIncomplete, ArtifactMismatch, ArtifactTooLarge, NotFound
from checkpoint.models import Artifact
from checkpoint.people import Actor
from checkpoint.permissions import Person, workflows_visible_to
from checkpoint.storage import stored_bytes
from checkpoint.storage.stored_bytes import CHUNK
from checkpoint.transactions import one_transaction, require_transaction
from checkpoint.workflows import require_right

IN_MEMORY = 1024 * 1024  # bytes; what is larger passes through a temporary file
CHECKED_FIRST = 256 * 1024 * 1024  # bytes; what is larger is checked while it is handed out
UNKNOWN_TYPE = "application/octet-stream"
NAME_LIMIT = 255  # characters

_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,59}")


@dataclass(frozen=True)
class Kept:
    """Bytes that are in storage and that no row need name yet. `size` is in bytes."""

    sha256: str
    size: int


def store(workflow_id: UUID, name: str, media_type: str, chunks: Iterable[bytes], *, actor: Actor) -> Artifact:
    """Keeps the bytes and writes the row. The same bytes under the same name are the workflow's same artifact.

    Raises:
        ArtifactTooLarge: more than one artifact may have, or than is left for the workflow. Reading stops there, and
            what the workflow has stays as it is.
        NotFound: there is no such workflow.
    """
    left = settings.CHECKPOINT_ARTIFACTS_PER_WORKFLOW - _stored_of(workflow_id)
    kept = keep_bytes(chunks, largest=min(settings.CHECKPOINT_LARGEST_ARTIFACT, left))
    return _record(Artifact(workflow_id=workflow_id, name=name, media_type=believed(media_type), **vars(kept)), actor)


def bring(
    workflow_id: UUID, name: str, media_type: str, chunks: Iterable[bytes], *, actor: Actor, user: User | None = None
) -> Artifact:
    """As `store`, for a person who may submit workflows for the workflow's team, or without one for the operator.

    Raises:
        NotFound: the user does not see the workflow.
        Forbidden: the user sees it but may not submit for its team.
        ActionIncomplete: no name, or it is too long.
    """
    if user is not None:
        workflow = workflows_visible_to(user).filter(pk=workflow_id).select_related("team").first()
        if workflow is None:
            raise NotFound(f"There is no workflow {workflow_id} that you may see.")
        require_right(user, workflow.team)
    if found := reasons.problem(name.strip(), wanted="say what it is called.", limit=NAME_LIMIT):
        raise ActionIncomplete("name", found)
    return store(workflow_id, name.strip(), media_type, chunks, actor=actor)


def keep_bytes(chunks: Iterable[bytes], *, largest: int) -> Kept:
    """Keeps bytes, outside of any transaction, for an artifact whose row a verb then writes.

    Raises:
        ArtifactTooLarge: more than `largest` bytes; reading stops there, and nothing is kept.
    """
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as draft:
        sha256, size = _copy(chunks, draft, largest=largest)
        stored_bytes.keep(draft, sha256=sha256, size=size)
    reach("artifact/kept", sha256)
    return Kept(sha256, size)


def insert(artifact: Artifact, *, actor: Actor, at: datetime) -> None:
    """Writes the row of an artifact whose bytes are kept, and audits it. The caller has locked the workflow.

    Raises:
        ArtifactTooLarge: the workflow's artifacts would have more bytes than they may.
        BytesNotKept: the bytes were brought too long ago.
    """
    require_transaction()
    most = settings.CHECKPOINT_ARTIFACTS_PER_WORKFLOW
    if _stored_of(artifact.workflow_id) + artifact.size > most:
        raise ArtifactTooLarge(f"The artifacts of one workflow have at most {most:,} bytes together.")
    stored_bytes.name(artifact.sha256)
    artifact.save(force_insert=True)
    entry = audit.Entry(
        stream=artifact.workflow_id,
        actor=actor,
        verb="keep",
        subject=f"artifact {artifact.name}",
        details={"artifact": str(artifact.pk), "sha256": artifact.sha256, "size": artifact.size},
    )
    audit.append([entry], at=at)


def believed(media_type: str) -> str:
    """The media type that somebody gives, or the one that says nothing. No browser is ever told to act on it."""
    return media_type.lower() if _MEDIA_TYPE.fullmatch(media_type.lower()) else UNKNOWN_TYPE


def visible_artifact(person: Person, artifact_id: UUID) -> Artifact:
    """One artifact, for whoever sees its workflow. Raises NotFound."""
    found = Artifact.objects.filter(pk=artifact_id, workflow__in=workflows_visible_to(person)).first()
    if found is None:
        raise NotFound(f"There is no artifact {artifact_id} that you may see.")
    return found


def of_hash(workflow_id: UUID, sha256: str) -> Artifact:
    """The workflow's artifact with these bytes. Raises ArtifactMismatch where it has none."""
    found = Artifact.objects.filter(workflow=workflow_id, sha256=sha256).first()
    if found is None:
        raise ArtifactMismatch(f"The workflow has no artifact sha256:{sha256}.")
    return found


@contextmanager
def open_verified(artifact: Artifact) -> Iterator[IO[bytes]]:
    """The artifact's bytes, read completely and held against the row before the caller sees the first of them.

    Raises:
        ArtifactMismatch: the bytes are gone, or are not those that were stored.
    """
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as checked:
        for chunk in _held_against_row(artifact):
            checked.write(chunk)
        checked.seek(0)
        yield checked


def chunks_of(artifact: Artifact) -> Iterator[bytes]:
    """The bytes for handing out. What is larger than CHECKED_FIRST is checked on its way, its last chunk last of all.

    Raises:
        ArtifactMismatch: at once, or on the way: then less than the artifact's size was handed out.
    """
    if artifact.size > CHECKED_FIRST:
        return _held_against_row(artifact)
    chunks = _checked_chunks(artifact)
    first = next(chunks, b"")  # checks before anything is answered
    return _with_first(first, chunks)


def _with_first(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _checked_chunks(artifact: Artifact) -> Iterator[bytes]:
    with open_verified(artifact) as checked:
        yield from iter(partial(checked.read, CHUNK), b"")


def _held_against_row(artifact: Artifact) -> Iterator[bytes]:
    """The stored chunks, each once the next one has shown that it is not the last; the last, once the hash is right."""
    digest, size, held = hashlib.sha256(), 0, b""
    try:
        for chunk in stored_bytes.read(stored_bytes.path_of(artifact.sha256)):
            digest.update(chunk)
            size += len(chunk)
            if size > artifact.size:
                break
            yield held
            held = chunk
    except FileNotFoundError:
        raise _mismatch(artifact, "are gone from storage") from None
    if (digest.hexdigest(), size) != (artifact.sha256, artifact.size):
        raise _mismatch(artifact, "do not match their SHA-256")
    yield held


def _mismatch(artifact: Artifact, what: str) -> ArtifactMismatch:
    return ArtifactMismatch(f"The bytes of artifact {artifact.pk} ({artifact.name}) {what}.")


def _copy(chunks: Iterable[bytes], target: IO[bytes], *, largest: int) -> tuple[str, int]:
    """Copies and returns SHA-256 and size."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > largest:
            raise ArtifactTooLarge(f"It has more than the {max(largest, 0):,} bytes that may still be stored here.")
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest(), size


def _stored_of(workflow_id: UUID) -> int:
    """Bytes of all artifacts of the workflow."""
    return Artifact.objects.filter(workflow=workflow_id).aggregate(bytes=Sum("size"))["bytes"] or 0


@one_transaction
def _record(artifact: Artifact, actor: Actor) -> Artifact:
    changes = transitions.lock([artifact.workflow_id], actor=actor)
    if not changes.workflows:
        raise NotFound(f"There is no workflow {artifact.workflow_id}.")
    same = Artifact.objects.filter(workflow=artifact.workflow_id, sha256=artifact.sha256, name=artifact.name).first()
    if same is not None:
        return same
    insert(artifact, actor=actor, at=changes.now)
    changes.finish()
    return artifact
