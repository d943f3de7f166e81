"""Permission given before execution."""

from __future__ import annotations

from django.db import models
from django_fsm import FSMField, FSMModelMixin, transition

from checkpoint.models.identifiers import uuid7
from checkpoint.models.policy_version import PolicyVersion
from checkpoint.models.step import Step
from checkpoint.models.tool_version import ToolVersion
from checkpoint.models.workflow import Workflow
from checkpoint.states import ApprovalStatus


class Approval(FSMModelMixin, models.Model):
    """A request to allow one step, bound to exact arguments, policy version and tool version; used once.

    `rule` is what the policy asked when it was requested (`rulings.ApprovalRule`). `expires_at` bounds both the answer
    and its use; `usable_from` is when the wait after the last approval is over.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="approvals")
    step = models.ForeignKey(Step, on_delete=models.PROTECT, related_name="approvals")
    status = FSMField(default=ApprovalStatus.PENDING, protected=True)
    rule = models.JSONField()
    arguments_hash = models.CharField(max_length=64)
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, db_index=False)
    tool_version = models.ForeignKey(ToolVersion, on_delete=models.PROTECT, db_index=False)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    usable_from = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    closing = models.TextField(default="", blank=True, help_text="How it ended, where no person's answer says so.")

    class Meta:
        ordering = ["requested_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["step"], condition=models.Q(status__in=["pending", "approved"]), name="approval_one_at_a_time"
            ),
            models.CheckConstraint(
                name="approval_status_known", condition=models.Q(status__in=[status.value for status in ApprovalStatus])
            ),
        ]
        indexes = [
            models.Index(fields=["requested_at"], name="approval_pending", condition=models.Q(status="pending")),
        ]

    def __str__(self) -> str:
        return f"approval {self.id}"

    @transition(field=status, source=ApprovalStatus.PENDING, target=ApprovalStatus.APPROVED)
    def approve(self) -> None:
        """Enough people allowed it."""

    @transition(field=status, source=ApprovalStatus.PENDING, target=ApprovalStatus.REJECTED)
    def reject(self) -> None:
        """One person refused it."""

    @transition(field=status, source=[ApprovalStatus.PENDING, ApprovalStatus.APPROVED], target=ApprovalStatus.WITHDRAWN)
    def withdraw(self) -> None:
        """It is not wanted any more."""
