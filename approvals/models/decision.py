"""What a person answered. Append-only."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Approval, Case
from checkpoint.models.identifiers import uuid7
from checkpoint.states import Decision as DecisionKind


class Decision(models.Model):
    """The answer that settled a case, or one person's answer to a request for approval.

    The person's name is kept as text too, so that the record outlives the account.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.OneToOneField(Case, null=True, on_delete=models.PROTECT, related_name="decision")
    approval = models.ForeignKey(Approval, null=True, on_delete=models.PROTECT, related_name="decisions")
    kind = models.CharField(max_length=20)
    reason = models.TextField()
    operation_id = models.CharField(max_length=255, default="", blank=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="decisions")
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
            models.CheckConstraint(
                name="decision_about_one_thing",
                condition=models.Q(case=None, approval__isnull=False) | models.Q(case__isnull=False, approval=None),
            ),
            models.UniqueConstraint(fields=["approval", "person_name"], name="decision_once_a_person_and_approval"),
        ]
        permissions = [("decide_case", "Can decide cases"), ("decide_approval", "Can decide on approvals")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.person_name}"
