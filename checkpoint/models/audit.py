"""Who did what to what, from which state to which, why: a hash chain for each stream."""

from __future__ import annotations

from django.db import models

from checkpoint.people import ENGINE, ENGINE_CHANNEL

NOT_BY_ENGINE = ~models.Q(channel=ENGINE_CHANNEL)


class AuditStream(models.Model):
    """The locked head of one chain. A workflow's stream has the workflow's id."""

    id = models.UUIDField(primary_key=True, editable=False)
    name = models.CharField(max_length=80, unique=True)
    last_seq = models.BigIntegerField(default=0)
    last_hash = models.CharField(max_length=64, default="", blank=True)

    def __str__(self) -> str:
        return self.name


class AuditEntry(models.Model):
    """One link. `text` is the exact text that was hashed; the other columns are for searching. Append-only."""

    pk = models.CompositePrimaryKey("stream_id", "seq")
    stream = models.ForeignKey(
        AuditStream, on_delete=models.PROTECT, related_name="entries", db_index=False, db_constraint=False
    )
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    actor = models.CharField(max_length=150)
    channel = models.CharField(max_length=20)
    verb = models.CharField(max_length=40)
    text = models.TextField()
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["stream_id", "seq"]
        verbose_name_plural = "audit entries"
        permissions = [("view_audit", "Can search and export every audit stream")]
        # Each insert pays for these, so there are no more than searching needs; what people did is little beside what
        # the engine did.
        indexes = [
            models.Index(fields=["at"], name="audit_newest"),
            models.Index(fields=["verb", "at"], name="audit_newest_of_verb"),
            models.Index(fields=["at"], name="audit_newest_of_people", condition=NOT_BY_ENGINE),
            models.Index(fields=["actor", "at"], name="audit_newest_of_actor", condition=~models.Q(actor=ENGINE.name)),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.verb}"
