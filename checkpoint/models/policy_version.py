"""The rules in force when something was planned."""

from __future__ import annotations

from django.db import models

from checkpoint.clock import Now
from checkpoint.models.identifiers import uuid7


class PolicyVersion(models.Model):
    """One immutable set of rules. The newest row is in force for new workflows; each workflow pins its own.

    `sha256` is taken over `text`; where that is empty, because the version is from before texts were kept, over the
    canonical JSON of `rules`.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    number = models.PositiveIntegerField(unique=True)
    sha256 = models.CharField(max_length=64)
    text = models.TextField(db_default="", default="", blank=True, help_text="YAML, as its author wrote it.")
    rules = models.JSONField(
        help_text="The text as JSON values: {defaults, rules}; before texts were kept, the fields of decide.Policy."
    )
    reason = models.TextField()
    author = models.CharField(max_length=150)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"policy {self.number}"
