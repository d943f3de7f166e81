"""What somebody is to be told, and each try at telling it: a transactional outbox."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce

from approvals.models.notice_channel import NoticeChannel
from approvals.notifying.notice_rules import UNSETTLED, NoticeKind, NoticeState
from checkpoint.models import Approval, Case, Workflow
from checkpoint.models.identifiers import uuid7


class Notice(models.Model):
    """Written in the transaction of the change that it tells of; sent later, outside of any transaction.

    There is one for each event, recipient and kind. The event is what it is about: the case, the approval, or else the
    workflow. `recipient` names a person or a channel for ever, also after the account was erased.
    While it waits, `due_at` is when it may be sent; while it is being sent, when its sender counts as dead.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=20)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="notices", db_index=False)
    case = models.ForeignKey(Case, null=True, on_delete=models.PROTECT, related_name="notices")
    approval = models.ForeignKey(Approval, null=True, on_delete=models.PROTECT, related_name="notices")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="notices", db_index=False
    )
    channel = models.ForeignKey(NoticeChannel, null=True, on_delete=models.PROTECT, db_index=False)
    recipient = models.CharField(max_length=60)
    state = models.CharField(max_length=10, default=NoticeState.WAITING.value)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    attempt_count = models.PositiveIntegerField(default=0)
    attempts_allowed = models.PositiveIntegerField()
    detail = models.TextField(default="", blank=True, help_text="The last error, or why it was skipped.")

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], name="notice_due", condition=models.Q(state__in=UNSETTLED)),
            models.Index(fields=["-created_at", "-id"], name="notice_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                Coalesce("case", "approval", "workflow"), "kind", "recipient", name="notice_written_once"
            ),
            models.CheckConstraint(
                name="notice_kind_known", condition=models.Q(kind__in=[kind.value for kind in NoticeKind])
            ),
            models.CheckConstraint(
                name="notice_state_known", condition=models.Q(state__in=[state.value for state in NoticeState])
            ),
            models.CheckConstraint(
                name="notice_about_one_thing", condition=models.Q(case=None) | models.Q(approval=None)
            ),
            models.CheckConstraint(
                name="notice_to_one_recipient", condition=models.Q(person=None) | models.Q(channel=None)
            ),
            models.CheckConstraint(
                name="notice_settled_has_time",
                condition=models.Q(state__in=UNSETTLED, settled_at=None)
                | ~models.Q(state__in=UNSETTLED) & models.Q(settled_at__isnull=False),
            ),
        ]
        permissions = [
            ("administer_notices", "Can see every notice, send it again and set up channels"),
            ("receive_escalations", "Is told when a question stays unanswered for too long"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.recipient}"


class Delivery(models.Model):
    """One try at sending a notice. Append-only but for its ending; one without an ending had a sender that died."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    notice = models.ForeignKey(Notice, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    delivered = models.BooleanField(null=True)
    detail = models.TextField(default="", blank=True, help_text="The receiver's words, or the error.")

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["notice", "number"], name="delivery_number_once"),
            models.CheckConstraint(
                name="delivery_ending_whole",
                condition=models.Q(ended_at=None, delivered=None)
                | models.Q(ended_at__isnull=False, delivered__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.number} of {self.notice_id}"
