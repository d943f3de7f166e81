"""Artifacts as a tool uses them: those of its call's own workflow, streamed, and checked before the first byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Annotated
from uuid import UUID

from django.db import close_old_connections
from pydantic import BaseModel, ConfigDict, Field

from checkpoint import artifacts
from checkpoint.errors import ArtifactMismatch
from checkpoint.models import Artifact
from checkpoint.outcomes import ARTIFACT_MISMATCH, NotApplied
from checkpoint.people import ENGINE

_PREFIX = "sha256:"
_WORDS = 'an artifact\'s hash, "sha256:" and 64 hexadecimal digits, as `manage.py artifact put` prints it'


class ArtifactReference(BaseModel):
    """How arguments refer to an artifact of their workflow: `{"artifact": "sha256:…"}`. The bytes stay out of them."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    artifact: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$", json_schema_extra={"x-must-be": _WORDS})]

    @property
    def sha256(self) -> str:
        """As 64 hexadecimal digits."""
        return self.artifact.removeprefix(_PREFIX)


class CallArtifacts:
    """The artifacts of one workflow. Every use has a database connection of its own thread, which is given back."""

    def __init__(self, workflow_id: UUID) -> None:
        self._workflow_id = workflow_id

    def store(self, name: str, media_type: str, chunks: Iterable[bytes]) -> str:
        """Keeps what a tool made; the reference "sha256:…", for a fact of the receipt. Repeating it changes nothing.

        Raises:
            ArtifactTooLarge: as `checkpoint.artifacts.store`. It says nothing about the effect.
        """
        with _connection():
            kept = artifacts.store(self._workflow_id, name, media_type, chunks, actor=ENGINE)
            return f"{_PREFIX}{kept.sha256}"

    def size(self, reference: ArtifactReference) -> int:
        """Bytes. Raises NotApplied as `open`."""
        return self._found(reference).size

    @contextmanager
    def open(self, reference: ArtifactReference) -> Iterator[IO[bytes]]:
        """The bytes as a file, all of them held against the hash before the tool gets the first.

        Open it before anything is sent.

        Raises:
            NotApplied: the bytes are damaged or lost, which becomes a case, or the storage is away for now.
        """
        artifact = self._found(reference)
        with ExitStack() as opened:
            with _connection(), _refusing():
                stored = opened.enter_context(artifacts.open_verified(artifact))
            yield stored

    def _found(self, reference: ArtifactReference) -> Artifact:
        with _connection(), _refusing():
            return artifacts.of_hash(self._workflow_id, reference.sha256)


@contextmanager
def _refusing() -> Iterator[None]:
    """What goes wrong before a tool has the bytes went wrong before it could send any."""
    try:
        yield
    except ArtifactMismatch as error:
        raise NotApplied(f"nothing was sent: {error}", code=ARTIFACT_MISMATCH, permanent=True) from None
    except Exception as error:
        message = f"nothing was sent: the artifact cannot be read now: {type(error).__name__}"
        raise NotApplied(message, code="artifact_unreadable") from error


@contextmanager
def _connection() -> Iterator[None]:
    """A hand lives as long as its process; its connection does not stay open for that long."""
    try:
        yield
    finally:
        close_old_connections()
