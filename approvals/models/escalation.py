"""A case that those on call were told of."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Case
from checkpoint.models.identifiers import uuid7


class Escalation(models.Model):
    """By a person, or by the timer that runs out when nobody answers. Once for each case. Append-only."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.OneToOneField(Case, on_delete=models.PROTECT, related_name="escalation")
    reason = models.TextField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    person_name = models.CharField(max_length=150)
    channel = models.CharField(max_length=20)
    escalated_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"escalated by {self.person_name}"
