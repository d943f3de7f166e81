"""What a person says about a case."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Case
from checkpoint.models.identifiers import uuid7


class Comment(models.Model):
    """Append-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="comments")
    text = models.TextField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    person_name = models.CharField(max_length=150)
    channel = models.CharField(max_length=20)
    commented_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"comment by {self.person_name}"
