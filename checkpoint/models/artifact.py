"""A large thing, addressed by its content."""

from __future__ import annotations

from django.db import models

from checkpoint.clock import Now
from checkpoint.models.identifiers import uuid7
from checkpoint.models.workflow import Workflow


class Artifact(models.Model):
    """The row is the truth; the bytes live in object storage under their SHA-256. Append-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="artifacts")
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField(help_text="Bytes.")
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name
