"""The compact facts from which an agent rebuilds its context, as they were issued."""

from __future__ import annotations

from django.db import models

from checkpoint.models.identifiers import uuid7
from checkpoint.models.workflow import Workflow


class ResumePacket(models.Model):
    """One packet. Append-only; the same text is issued once, to whoever asks for it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="packets", db_index=False)
    workflow_version = models.PositiveIntegerField()
    budget = models.PositiveIntegerField()
    counted_in = models.CharField(max_length=40, help_text="Bytes, or the name of a tokenizer.")
    text = models.TextField(help_text="Canonical JSON (RFC 8785) that the hash was taken over.")
    sha256 = models.CharField(max_length=64)
    issued_to = models.CharField(max_length=150, help_text="Who asked for it first.")
    issued_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workflow", "sha256"], name="resume_packet_once")]

    def __str__(self) -> str:
        return f"packet {self.id}"
