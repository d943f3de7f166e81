"""Who looks after a case."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Case
from checkpoint.models.identifiers import uuid7


class Assignment(models.Model):
    """From when until when a case was one person's. A courtesy, not a lock: whoever may decide still may.

    PostgreSQL keeps it to one at a time. It is over with `ended_at`, or when its case is closed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    person_name = models.CharField(max_length=150)
    assigned_by_name = models.CharField(max_length=150, help_text="The same name where the person claimed it.")
    channel = models.CharField(max_length=20)
    reason = models.TextField(default="", blank=True)
    assigned_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["assigned_at"]
        indexes = [models.Index(fields=["case", "assigned_at"], name="assignment_of_case")]
        constraints = [
            models.UniqueConstraint(fields=["case"], condition=models.Q(ended_at=None), name="assignment_one_at_a_time")
        ]

    def __str__(self) -> str:
        return f"assigned to {self.person_name}"

    @property
    def is_claim(self) -> bool:
        """Whether the person took the case, rather than being given it."""
        return self.person_name == self.assigned_by_name
