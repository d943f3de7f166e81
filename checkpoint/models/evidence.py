"""One fact with its source and time."""

from __future__ import annotations

import json
from typing import Any

from django.db import models

from checkpoint.models.identifiers import uuid7
from checkpoint.models.step import Step
from checkpoint.states import Standing


class EvidenceKind(models.TextChoices):
    """Where the fact comes from."""

    RESPONSE = "response"
    INSPECTION = "inspection"
    VERIFICATION = "verification"
    ATTESTATION = "attestation"
    DRIFT = "drift"
    LATE_RECEIPT = "late_receipt"
    FLIGHT_RECORD = "flight_record"
    INTENT = "intent"


class Evidence(models.Model):
    """Append-only. `facts` is the canonical JSON that `sha256` was taken over."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    step = models.ForeignKey(Step, on_delete=models.PROTECT, related_name="evidence")
    kind = models.CharField(max_length=20, choices=EvidenceKind)
    finding = models.CharField(max_length=40, help_text="One word: receipt, found, absent, visible, not_visible …")
    source = models.CharField(max_length=255)
    standing = models.CharField(max_length=20)
    attempt_number = models.PositiveIntegerField(null=True)
    fence = models.BigIntegerField()
    operation_id = models.CharField(max_length=255, default="", blank=True)
    facts = models.TextField()
    sha256 = models.CharField(max_length=64)
    observed_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "evidence"
        constraints = [
            models.CheckConstraint(
                name="evidence_standing_known",
                condition=models.Q(standing__in=[standing.value for standing in Standing]),
            ),
            models.CheckConstraint(
                name="evidence_kind_known", condition=models.Q(kind__in=[kind.value for kind in EvidenceKind])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.finding}"

    @property
    def facts_value(self) -> Any:
        """The facts as JSON values."""
        return json.loads(self.facts)
