"""Where a whole team is told."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from approvals.notifying.notice_rules import ChannelFormat, NoticeKind
from checkpoint.clock import Now
from checkpoint.models import Team
from checkpoint.models.identifiers import uuid7


class NoticeChannel(models.Model):
    """A webhook of one team, or of all teams where it names none. Switched off rather than deleted."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=80, unique=True)
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="notice_channels")
    format = models.CharField(max_length=10)
    url = models.TextField(help_text="Holds the secret of a Slack-compatible webhook, so it is never shown whole.")
    secret_name = models.CharField(
        max_length=60, default="", blank=True, help_text="The environment's CHECKPOINT_SECRET_<name> signs with it."
    )
    kinds = ArrayField(models.CharField(max_length=20))
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="notice_channel_kinds_known",
                condition=models.Q(kinds__contained_by=[kind.value for kind in NoticeKind]),
            ),
            models.CheckConstraint(
                name="notice_channel_standard_is_signed",
                condition=models.Q(format=ChannelFormat.SLACK.value, secret_name="")
                | models.Q(format=ChannelFormat.STANDARD.value) & ~models.Q(secret_name=""),
            ),
        ]

    def __str__(self) -> str:
        return self.name
