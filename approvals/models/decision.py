"""What a person answered. Append-only."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Case
from checkpoint.models.identifiers import uuid7
from checkpoint.states import Decision as DecisionKind


class Decision(models.Model):
    """One answer to one case. The person's name is kept as text too, so that the record outlives the account."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.OneToOneField(Case, on_delete=models.PROTECT, related_name="decision")
    kind = models.CharField(max_length=20)
    reason = models.TextField()
    operation_id = models.CharField(max_length=255, default="", blank=True)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="decisions"
    )
    person_name = models.CharField(max_length=150)
    channel = models.CharField(max_length=20)
    step_version = models.PositiveIntegerField(help_text="What the person saw.")
    arguments_hash = models.CharField(max_length=64, blank=True, help_text="What the person saw.")
    decided_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="decision_kind_known", condition=models.Q(kind__in=[kind.value for kind in DecisionKind])
            ),
        ]
        permissions = [("decide_case", "Can decide cases")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.person_name}"
