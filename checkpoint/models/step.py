"""One intended effect."""

from __future__ import annotations

from django.db import models
from django_fsm import FSMField, FSMModelMixin, transition

from checkpoint.models.identifiers import uuid7
from checkpoint.models.tool_version import ToolVersion
from checkpoint.models.worker_process import WorkerProcess
from checkpoint.models.workflow import Workflow
from checkpoint.states import STEP_ARROWS, Standing, StepStatus

HAS_ARGUMENTS = ["prepared", "started", "committed", "verified", "failed", "uncertain"]


def _sources(target: StepStatus) -> list[StepStatus]:
    return [source for source, targets in STEP_ARROWS.items() if target in targets]


class Activity(models.TextChoices):
    """What the holder of a lease is doing."""

    EXECUTE = "execute"
    INSPECT = "inspect"
    VERIFY = "verify"


class Step(FSMModelMixin, models.Model):
    """A tool, its arguments and key, and where the effect stands.

    The lease columns are set together: `lease_holder` may act until `lease_until` (database time) under `fence`,
    which rises at every acquisition and never falls.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workflow = models.ForeignKey(Workflow, on_delete=models.PROTECT, related_name="steps", db_index=False)
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    tool_version = models.ForeignKey(ToolVersion, on_delete=models.PROTECT, db_index=False)
    template = models.TextField(help_text="Canonical JSON of the arguments as planned, with references.")
    variant = models.CharField(max_length=60, default="", blank=True)
    arguments = models.TextField(null=True, help_text="Canonical JSON of the resolved arguments.")
    arguments_hash = models.CharField(max_length=64, default="", blank=True)
    idempotency_key = models.CharField(max_length=64, default="", blank=True)
    intent_name = models.CharField(max_length=200, default="", blank=True, help_text="What its caller calls it.")
    compensates = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="compensations", db_index=False
    )
    # The named intent whose owner it waits for. Without an index of its own: only steps that wait are looked for.
    waits_for = models.ForeignKey("Intent", null=True, on_delete=models.PROTECT, related_name="waiting", db_index=False)

    by_agent = models.BooleanField(default=False, help_text="Its agent makes the call; no worker does.")

    status = FSMField(default=StepStatus.PLANNED, protected=True)
    version = models.PositiveIntegerField(default=1)
    standing = models.CharField(max_length=20, default="", blank=True)
    receipt = models.ForeignKey("Evidence", null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    operation_id = models.CharField(max_length=255, default="", blank=True)

    fence = models.BigIntegerField(default=0)
    # Without a constraint in the database, which would be checked at every acquisition: worker rows are never deleted.
    lease_holder = models.ForeignKey(
        WorkerProcess, null=True, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    lease_until = models.DateTimeField(null=True)
    activity = models.CharField(max_length=10, choices=Activity, default="", blank=True)

    attempt_count = models.PositiveIntegerField(default=0)
    attempts_allowed = models.PositiveIntegerField(default=0, help_text="Attempts after which a person is asked.")
    inspection_count = models.PositiveIntegerField(default=0, help_text="Inspections since the last attempt.")
    verification_count = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(null=True, help_text="Not before: backoff of a retry, inspection or verification.")
    committed_at = models.DateTimeField(null=True)
    verified_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["position", "name"]
        indexes = [
            models.Index(fields=["workflow", "position"], name="step_of_workflow"),
            models.Index(fields=["tool_version"], name="step_started", condition=models.Q(status="started")),
            models.Index(fields=["waits_for"], name="step_waiting", condition=models.Q(waits_for__isnull=False)),
            models.Index(
                fields=["compensates"], name="step_compensation", condition=models.Q(compensates__isnull=False)
            ),
        ]
        constraints = [
            # What ended without an effect may be asked for anew.
            models.UniqueConstraint(
                fields=["compensates"],
                condition=models.Q(compensates__isnull=False) & ~models.Q(status__in=["abandoned", "superseded"]),
                name="step_compensated_once",
            ),
            models.UniqueConstraint(
                fields=["workflow", "name"], condition=~models.Q(status="superseded"), name="step_name_once"
            ),
            models.CheckConstraint(
                name="step_status_known", condition=models.Q(status__in=[status.value for status in StepStatus])
            ),
            models.CheckConstraint(
                name="step_standing_known",
                condition=models.Q(standing__in=["", *(standing.value for standing in Standing)]),
            ),
            models.CheckConstraint(
                name="step_written_ahead",
                condition=~models.Q(status__in=HAS_ARGUMENTS)
                | models.Q(arguments__isnull=False) & ~models.Q(idempotency_key="") & ~models.Q(variant=""),
            ),
            models.CheckConstraint(
                name="step_done_has_receipt",
                condition=~models.Q(status__in=["committed", "verified"]) | models.Q(receipt__isnull=False),
            ),
            models.CheckConstraint(
                name="step_lease_whole",
                condition=models.Q(lease_holder=None, lease_until=None, activity="")
                | models.Q(lease_holder__isnull=False, lease_until__isnull=False) & ~models.Q(activity=""),
            ),
            models.CheckConstraint(
                name="step_acted_on_has_fence",
                condition=~models.Q(status__in=["started", "committed", "failed"]) | models.Q(fence__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @transition(field=status, source=_sources(StepStatus.COMMITTED), target=StepStatus.COMMITTED)
    def commit(self) -> None:
        """The effect took place."""

    @transition(field=status, source=_sources(StepStatus.VERIFIED), target=StepStatus.VERIFIED)
    def verify(self) -> None:
        """The outcome counts as read."""

    @transition(field=status, source=_sources(StepStatus.FAILED), target=StepStatus.FAILED)
    def fail(self) -> None:
        """Every attempt is held not to have taken effect."""

    @transition(field=status, source=_sources(StepStatus.UNCERTAIN), target=StepStatus.UNCERTAIN)
    def question(self) -> None:
        """A case about the outcome is open."""

    @transition(field=status, source=_sources(StepStatus.ABANDONED), target=StepStatus.ABANDONED)
    def abandon(self) -> None:
        """The step ends without its effect being wanted."""
