"""A process that acts on steps, and the session lock by which others know that it lives."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from checkpoint.clock import Now


class WorkerProcess(models.Model):
    """One life of one worker process, under a fresh random id; a restarted worker is another row.

    The process holds the advisory lock `lock_key` on a connection of its own for as long as it lives.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    lock_key = models.BigIntegerField(unique=True)
    host = models.CharField(max_length=255)
    boot_id = models.CharField(max_length=64)
    pid = models.PositiveIntegerField()
    tools = ArrayField(models.CharField(max_length=141), help_text="name@version of each tool it can run.")
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    ending = models.CharField(max_length=20, default="")

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="worker_process_alive", condition=models.Q(ended_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}"
