"""Permission given before execution."""

from __future__ import annotations

from django.db import models
from django_fsm import FSMField, FSMModelMixin, transition

from checkpoint.models.identifiers import uuid7
from checkpoint.models.policy_version import PolicyVersion
from checkpoint.models.step import Step
from checkpoint.models.tool_version import ToolVersion
from checkpoint.models.workflow import Workflow
from checkpoint.states import OPEN_REQUESTS, ApprovalStatus


class Approval(FSMModelMixin, models.Model):
    """A request to allow one step, bound to exact arguments, policy, prompt and tool versions; used once.

    `rule` is what the policy asked when it was requested (`rulings.ApprovalRule`). `expires_at` bounds the answer and,
    the rule's wait added, its use; `usable_from` is when the wait after the last approval is over.
    Where one request allows a plan, each of its steps has a row: the steps' shares are asked for, answered and ended
    together, and each is used by its own step. `part_of` points from the others to the row that is asked about.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="approvals")
    step = models.ForeignKey(Step, on_delete=models.PROTECT, related_name="approvals")
    status = FSMField(default=ApprovalStatus.PENDING, protected=True)
    rule = models.JSONField()
    part_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="parts")
    plan_hash = models.CharField(max_length=64, default="", blank=True, help_text="Of all shares; empty for a step.")
    arguments_hash = models.CharField(max_length=64, help_text="In a plan also of a template that is not resolved yet.")
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, db_index=False)
    tool_version = models.ForeignKey(ToolVersion, on_delete=models.PROTECT, db_index=False)
    prompt_version = models.CharField(max_length=100, null=True, help_text="Null in those from before it was kept.")
    newest_tool = models.ForeignKey(
        ToolVersion, null=True, on_delete=models.PROTECT, db_index=False, related_name="+", help_text="As above."
    )
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    usable_from = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    closing = models.TextField(default="", blank=True, help_text="How it ended, or what the agent is to change.")

    class Meta:
        ordering = ["requested_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["step"],
                condition=models.Q(status__in=["pending", "approved", "returned"]),
                name="approval_one_at_a_time",
            ),
            models.CheckConstraint(
                name="approval_part_has_plan", condition=models.Q(part_of=None) | ~models.Q(plan_hash="")
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

    @property
    def shown_hash(self) -> str:
        """What names all that is allowed by it, so that an answer can say what its person saw."""
        return self.plan_hash or self.arguments_hash

    @transition(field=status, source=ApprovalStatus.PENDING, target=ApprovalStatus.APPROVED)
    def approve(self) -> None:
        """Enough people allowed it."""

    @transition(field=status, source=ApprovalStatus.PENDING, target=ApprovalStatus.REJECTED)
    def reject(self) -> None:
        """One person refused it."""

    @transition(field=status, source=ApprovalStatus.PENDING, target=ApprovalStatus.RETURNED)
    def send_back(self) -> None:
        """One person asked the agent for changes."""

    @transition(field=status, source=list(OPEN_REQUESTS), target=ApprovalStatus.WITHDRAWN)
    def withdraw(self) -> None:
        """It is not wanted any more."""
