"""When somebody is to be told that nothing has happened."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Coalesce

from approvals.notifying.notice_rules import NoticeKind
from checkpoint.models import Approval, Case
from checkpoint.models.identifiers import uuid7


class NoticeTimer(models.Model):
    """Set in the transaction that asks; goes off once. Whoever wants it later moves `due_at` while it has not."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=20)
    case = models.ForeignKey(Case, null=True, on_delete=models.PROTECT, related_name="notice_timers")
    approval = models.ForeignKey(Approval, null=True, on_delete=models.PROTECT, related_name="notice_timers")
    due_at = models.DateTimeField()
    fired_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="notice_timer_due", condition=models.Q(fired_at=None))]
        constraints = [
            models.UniqueConstraint(Coalesce("case", "approval"), "kind", name="notice_timer_set_once"),
            models.CheckConstraint(
                name="notice_timer_kind_known",
                condition=models.Q(kind__in=[NoticeKind.REMINDER.value, NoticeKind.ESCALATION.value]),
            ),
            models.CheckConstraint(
                name="notice_timer_about_one_thing",
                condition=models.Q(case=None, approval__isnull=False) | models.Q(case__isnull=False, approval=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.due_at}"
