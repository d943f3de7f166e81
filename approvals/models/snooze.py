"""A case that is put aside for a while."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.models import Case
from checkpoint.models.identifiers import uuid7


class Snooze(models.Model):
    """Until `ends_at` by database time the case stays open and counted, but out of the queue's first list (S36).

    It ends by itself. `woken_at` is when a person ended it sooner; it is over, too, when its case is closed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="snoozes")
    reason = models.TextField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    person_name = models.CharField(max_length=150)
    channel = models.CharField(max_length=20)
    snoozed_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    woken_at = models.DateTimeField(null=True)
    woken_by_name = models.CharField(max_length=150, default="", blank=True)

    class Meta:
        ordering = ["snoozed_at"]
        constraints = [
            models.CheckConstraint(name="snooze_ends", condition=models.Q(ends_at__gt=models.F("snoozed_at"))),
            models.CheckConstraint(
                name="snooze_woken_whole",
                condition=models.Q(woken_at=None, woken_by_name="")
                | models.Q(woken_at__isnull=False) & ~models.Q(woken_by_name=""),
            ),
        ]

    def __str__(self) -> str:
        return f"snoozed until {self.ends_at}"
