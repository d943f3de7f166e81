"""One request under an Idempotency-Key, and the reply that a repetition of it gets."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from checkpoint.clock import Now


class KeptReply(models.Model):
    """The row stands from before the request is carried out; its reply is written with what the request changes.

    `holder` names the request that carries it out now, until `held_until` (database time).
    """

    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, address and body.")
    holder = models.UUIDField()
    held_until = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status; null while it is carried out.")
    location = models.CharField(max_length=255, default="", blank=True)
    body = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "kept replies"
        indexes = [models.Index(fields=["created_at"], name="kept_reply_oldest")]
        constraints = [models.UniqueConstraint(fields=["account", "key"], name="kept_reply_once")]

    def __str__(self) -> str:
        return self.key
