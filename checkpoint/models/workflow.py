"""One long task of one agent."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django_fsm import FSMField, FSMModelMixin

from checkpoint.clock import Now
from checkpoint.models.identifiers import uuid7
from checkpoint.models.policy_version import PolicyVersion
from checkpoint.models.team import Team
from checkpoint.states import WorkflowStatus


class Workflow(FSMModelMixin, models.Model):
    """Goal, constraints, input, plan and version of one task.

    `status` is a function of the steps, approvals and cases (`states.workflow_status`); only `transitions` writes it.
    `wake_at` is the earliest time at which anybody can do anything for this workflow; null when only a person or the
    agent can move it on. The sweeper and the claim read nothing else to find work. `held_by` names the tool at whose
    limit the last claim stopped, so that whoever leaves a place there can pass it on.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=60)
    reference = models.CharField(max_length=200, default="", blank=True, help_text="What its caller calls it, once.")
    goal = models.TextField()
    constraints = models.JSONField(default=list)
    input = models.TextField(help_text="Canonical JSON (RFC 8785).")
    input_hash = models.CharField(max_length=64)
    prompt_version = models.CharField(max_length=100, help_text="With which it was planned, or accepted since.")
    resumed_prompt = models.CharField(max_length=100, null=True, help_text="With which its agent resumed last.")
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, db_index=False)
    status = FSMField(default=WorkflowStatus.PLANNED, protected=True)
    version = models.PositiveIntegerField(default=1)
    sealed = models.BooleanField(default=True)
    winding_down = models.BooleanField(default=False)
    wake_at = models.DateTimeField(null=True)
    agent_seconds = models.PositiveIntegerField(null=True, help_text="How long it waits for its agent; null: policy.")
    agent_due_at = models.DateTimeField(null=True, help_text="While it is the agent's turn: when people are asked.")
    held_by = models.CharField(max_length=100, null=True)
    submitted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, db_index=False)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [
            ("view_all_workflows", "Can view the workflows of every team"),
            ("submit_workflow", "Can submit workflows for one's teams"),
            ("administer_workflow", "Can wind down workflows that one sees"),
        ]
        indexes = [
            models.Index(fields=["team", "-id"], name="workflow_newest_of_team"),
            models.Index(fields=["wake_at"], name="workflow_due", condition=models.Q(wake_at__isnull=False)),
            models.Index(
                fields=["held_by", "wake_at"], name="workflow_held", condition=models.Q(held_by__isnull=False)
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "reference"], condition=~models.Q(reference=""), name="workflow_reference_once"
            ),
            models.CheckConstraint(
                name="workflow_status_known", condition=models.Q(status__in=[status.value for status in WorkflowStatus])
            ),
            models.CheckConstraint(
                name="workflow_terminal_has_end",
                condition=models.Q(status__in=["completed", "abandoned"], ended_at__isnull=False, wake_at=None)
                | ~models.Q(status__in=["completed", "abandoned"]) & models.Q(ended_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
