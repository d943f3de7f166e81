"""One try at executing a step."""

from __future__ import annotations

from django.db import models

from checkpoint.models.identifiers import uuid7
from checkpoint.models.step import Step
from checkpoint.models.worker_process import WorkerProcess


class Ending(models.TextChoices):
    """How the call ended for us, which is not always whether the effect took place."""

    RECEIPT = "receipt"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    LOST = "lost"


class Attempt(models.Model):
    """Append-only but for its ending: `ended_at`, `ending` and `detail` are set once, and so is `applied`.

    `applied` is null while nobody knows whether the effect took place.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    step = models.ForeignKey(Step, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    fence = models.BigIntegerField()
    worker = models.ForeignKey(
        WorkerProcess, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    started_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ending = models.CharField(max_length=10, choices=Ending, default="", blank=True)
    applied = models.BooleanField(null=True)
    detail = models.TextField(default="", blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["step", "number"], name="attempt_number_once"),
            models.CheckConstraint(
                name="attempt_ending_whole",
                condition=models.Q(ended_at=None, ending="") | models.Q(ended_at__isnull=False) & ~models.Q(ending=""),
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.step_id}"
