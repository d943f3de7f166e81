"""Where the bytes of artifacts are, and which paths in storage nobody answers for."""

from __future__ import annotations

from django.db import models

from checkpoint.clock import Now


class StoredBytes(models.Model):
    """Bytes that are in storage, whole, at `path`; every artifact of this hash shares them.

    They may go only while no artifact names them and nobody has brought them again for the grace time.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    path = models.CharField(max_length=200, unique=True)
    named = models.BooleanField(default=False, help_text="Whether an artifact names them; never taken back.")
    brought_at = models.DateTimeField(help_text="When somebody last brought them.")

    class Meta:
        indexes = [
            models.Index(fields=["brought_at"], name="stored_bytes_unnamed", condition=models.Q(named=False)),
        ]

    def __str__(self) -> str:
        return self.sha256


class LoosePath(models.Model):
    """A path that may hold bytes which are to be taken away: written ahead of every upload and of every removal.

    A path is used once, for ever: what was taken away cannot come back under it.
    """

    path = models.CharField(max_length=200, primary_key=True)
    since = models.DateTimeField(db_default=Now())
    doomed = models.BooleanField(default=False, help_text="Being taken away; an upload to it no longer counts.")

    class Meta:
        indexes = [models.Index(fields=["since"], name="loose_path_since")]

    def __str__(self) -> str:
        return self.path
