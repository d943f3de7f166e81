"""A question to a person."""

from __future__ import annotations

from django.db import models
from django_fsm import FSMField, FSMModelMixin, transition

from checkpoint.models.identifiers import uuid7
from checkpoint.models.step import Step
from checkpoint.models.workflow import Workflow
from checkpoint.states import CASE_RULES, CaseReason, CaseRule, CaseStatus


class Case(FSMModelMixin, models.Model):
    """Opened in the transaction that makes a step wait for a person. `findings` holds known, unknown and tried.

    `step_version` and `arguments_hash` are what a decision must name: it is about exactly these.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="cases")
    step = models.ForeignKey(Step, on_delete=models.PROTECT, related_name="cases")
    reason = models.CharField(max_length=30)
    sentence = models.TextField()
    findings = models.JSONField()
    status = FSMField(default=CaseStatus.OPEN, protected=True)
    step_version = models.PositiveIntegerField()
    arguments_hash = models.CharField(max_length=64, blank=True)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    closing = models.TextField(default="", blank=True, help_text="How it was settled without a person.")

    class Meta:
        ordering = ["opened_at"]
        indexes = [
            models.Index(fields=["opened_at"], name="case_open", condition=models.Q(status="open")),
            models.Index(fields=["-closed_at", "-id"], name="case_closed", condition=~models.Q(status="open")),
            models.Index(
                fields=["reason", "-closed_at"], name="case_closed_of_reason", condition=~models.Q(status="open")
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["step", "reason"], condition=models.Q(status="open"), name="case_asked_once"
            ),
            models.CheckConstraint(
                name="case_reason_known", condition=models.Q(reason__in=[reason.value for reason in CaseReason])
            ),
            models.CheckConstraint(
                name="case_status_known", condition=models.Q(status__in=[status.value for status in CaseStatus])
            ),
            models.CheckConstraint(
                name="case_closed_has_time",
                condition=models.Q(status="open", closed_at=None)
                | ~models.Q(status="open") & models.Q(closed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.id}"

    @property
    def rule(self) -> CaseRule:
        """What this case's reason allows."""
        return CASE_RULES[CaseReason(self.reason)]

    @transition(field=status, source=CaseStatus.OPEN, target=CaseStatus.DECIDED)
    def decide(self) -> None:
        """A person answered."""

    @transition(field=status, source=CaseStatus.OPEN, target=CaseStatus.SETTLED)
    def settle(self) -> None:
        """Evidence answered, or the step moved on by another way."""
