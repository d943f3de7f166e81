"""A file that a person brought to a case."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Artifact, Case, Evidence
from checkpoint.models.identifiers import uuid7


class Attachment(models.Model):
    """Joins the bytes (an artifact) to what they say about the step (evidence of kind attestation). Append-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="attachments")
    artifact = models.OneToOneField(Artifact, on_delete=models.PROTECT, related_name="attachment")
    evidence = models.OneToOneField(Evidence, on_delete=models.PROTECT, related_name="attachment")
    reason = models.TextField(help_text="What the file shows.")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    person_name = models.CharField(max_length=150)
    channel = models.CharField(max_length=20)
    attached_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"file attached by {self.person_name}"
