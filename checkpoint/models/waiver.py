"""A recorded decision of the policy that a plan goes on without a step."""

from __future__ import annotations

from django.db import models

from checkpoint.models.identifiers import uuid7
from checkpoint.models.policy_version import PolicyVersion
from checkpoint.models.step import Step


class WaiverCause(models.TextChoices):
    """Why a plan goes on without a step."""

    FAILED = "failed"
    LACKS_RESULT = "lacks_result"


class Waiver(models.Model):
    """Written in the transaction that ends the step. A workflow whose other steps are verified counts as completed.

    It stands for a step of a batch of which every attempt is proved not to have taken effect, or for a later step that
    was never sent because it refers to the result of a waived one. Never for a step whose outcome is not known.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    step = models.OneToOneField(Step, on_delete=models.PROTECT, related_name="waiver")
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, db_index=False)
    cause = models.CharField(max_length=20, choices=WaiverCause)
    reason = models.TextField()
    waived_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(name="waiver_cause_known", condition=models.Q(cause__in=WaiverCause.values))
        ]

    def __str__(self) -> str:
        return f"waiver of step {self.step_id}"
