"""One person's agreement with an answer that needs several."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Case
from checkpoint.models.identifiers import uuid7


class Signature(models.Model):
    """Where policy wants four eyes on a case, the first answers wait here for the last. Append-only.

    It is about the step as the person saw it: one that was given on an earlier version counts no more, and the same
    person may sign again.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="signatures")
    kind = models.CharField(max_length=20)
    reason = models.TextField()
    operation_id = models.CharField(max_length=255, default="", blank=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    person_name = models.CharField(max_length=150)
    channel = models.CharField(max_length=20)
    step_version = models.PositiveIntegerField(help_text="What the person saw.")
    signed_at = models.DateTimeField()

    class Meta:
        ordering = ["signed_at"]
        constraints = [
            models.UniqueConstraint(fields=["case", "step_version", "person_name"], name="signature_once_a_person")
        ]

    def __str__(self) -> str:
        return f"{self.kind} signed by {self.person_name}"
