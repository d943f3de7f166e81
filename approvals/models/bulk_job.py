"""One answer of one person to many cases, or to many requests for approval, as a stored job."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django_fsm import FSMField, FSMModelMixin, transition

from approvals.bulk.states import ANSWERS, BulkJobStatus, BulkNoun, BulkResult, noun
from approvals.models.decision import Decision
from checkpoint.models import Approval, Case
from checkpoint.models.identifiers import uuid7
from checkpoint.states import Decision as DecisionKind

_ENDED = [BulkJobStatus.DONE.value, BulkJobStatus.ABORTED.value]
_KINDS = [kind.value for kinds in ANSWERS.values() for kind in kinds]


class BulkJob(FSMModelMixin, models.Model):
    """Frozen at its creation into items (S33). Totals are counted from the items, never stored a second time.

    `filter` is what its items were found by, null where they were chosen one by one; `matched` is how many there were,
    and `count` how many of them are items, at most `cap` (S34). `holder` and `worked_until` say which worker is on it:
    only so that two need not contend, for every item guards itself.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="bulk_jobs", db_index=False
    )
    person_name = models.CharField(max_length=150)
    channel = models.CharField(max_length=20, help_text="By which way it was prepared; its answers are by bulk.")
    kind = models.CharField(max_length=20)
    reason = models.TextField()
    filter = models.JSONField(null=True)
    matched = models.PositiveIntegerField()
    count = models.PositiveIntegerField()
    cap = models.PositiveIntegerField()
    status = FSMField(default=BulkJobStatus.DRAFT, protected=True)
    frozen_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    authenticated_at = models.DateTimeField(null=True, help_text="When whoever started it had last authenticated.")
    ended_at = models.DateTimeField(null=True)
    aborted_by = models.CharField(max_length=150, default="", blank=True)
    holder = models.UUIDField(null=True)
    worked_until = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["person", "-id"], name="bulk_job_newest_of_person"),
            models.Index(fields=["started_at"], name="bulk_job_running", condition=models.Q(status="running")),
        ]
        constraints = [
            models.CheckConstraint(
                name="bulk_job_status_known", condition=models.Q(status__in=[status.value for status in BulkJobStatus])
            ),
            models.CheckConstraint(name="bulk_job_kind_known", condition=models.Q(kind__in=_KINDS)),
            models.CheckConstraint(name="bulk_job_has_reason", condition=~models.Q(reason="")),
            models.CheckConstraint(
                name="bulk_job_within_cap",
                condition=models.Q(count__gt=0, count__lte=models.F("cap"), matched__gte=models.F("count")),
            ),
            models.CheckConstraint(
                name="bulk_job_ended_has_time",
                condition=models.Q(status__in=_ENDED, ended_at__isnull=False)
                | ~models.Q(status__in=_ENDED) & models.Q(ended_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"bulk job {self.id}"

    @property
    def noun(self) -> BulkNoun:
        """What its items are."""
        return noun(DecisionKind(self.kind))

    @transition(field=status, source=BulkJobStatus.DRAFT, target=BulkJobStatus.RUNNING)
    def start(self) -> None:
        """The person has seen the preview and wants it."""

    @transition(field=status, source=BulkJobStatus.RUNNING, target=BulkJobStatus.DONE)
    def finish(self) -> None:
        """Every item has its result."""

    @transition(field=status, source=[BulkJobStatus.DRAFT, BulkJobStatus.RUNNING], target=BulkJobStatus.ABORTED)
    def abort(self) -> None:
        """Nothing more is answered; what was answered stays."""


class BulkItem(models.Model):
    """One case or request, with the version and hash that the answer is bound to, and what became of it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    job = models.ForeignKey(BulkJob, on_delete=models.PROTECT, related_name="items", db_index=False)
    number = models.PositiveIntegerField()
    case = models.ForeignKey(Case, null=True, on_delete=models.PROTECT, related_name="bulk_items")
    approval = models.ForeignKey(Approval, null=True, on_delete=models.PROTECT, related_name="bulk_items")
    step_version = models.PositiveIntegerField()
    arguments_hash = models.CharField(max_length=64, blank=True)
    result = models.CharField(max_length=10, default=BulkResult.PENDING.value)
    message = models.TextField(default="", blank=True)
    decision = models.OneToOneField(
        Decision, null=True, on_delete=models.PROTECT, related_name="bulk_item", help_text="What it recorded, if done."
    )
    at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="bulk_item_number_once"),
            models.UniqueConstraint(fields=["job", "case"], name="bulk_item_case_once"),
            models.UniqueConstraint(fields=["job", "approval"], name="bulk_item_approval_once"),
            models.CheckConstraint(
                name="bulk_item_about_one_thing",
                condition=models.Q(case=None, approval__isnull=False) | models.Q(case__isnull=False, approval=None),
            ),
            models.CheckConstraint(
                name="bulk_item_result_known", condition=models.Q(result__in=[result.value for result in BulkResult])
            ),
            models.CheckConstraint(
                name="bulk_item_result_has_time",
                condition=models.Q(result="pending", at=None)
                | ~models.Q(result="pending") & models.Q(at__isnull=False),
            ),
            models.CheckConstraint(
                name="bulk_item_only_done_has_decision", condition=models.Q(result="done") | models.Q(decision=None)
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.number}"
