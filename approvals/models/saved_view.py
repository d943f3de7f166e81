"""A view of the review queue that a person wants to come back to."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models.identifiers import uuid7


class SavedView(models.Model):
    """A name for the query of the queue's address. A convenience of one person; nothing depends on it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views", db_index=False
    )
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["person", "name"], name="saved_view_name_once")]

    def __str__(self) -> str:
        return self.name
