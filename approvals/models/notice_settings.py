"""How a person wants to be told."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from approvals.notifying.notice_rules import NoticeKind, Preferences, QuietHours


class NoticeSettings(models.Model):
    """One person's wishes. Who has no row wants everything at once."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="notice_settings"
    )
    email = models.BooleanField(default=True)
    muted = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    time_zone = models.CharField(max_length=64, default="UTC")

    class Meta:
        verbose_name_plural = "notice settings"
        constraints = [
            models.CheckConstraint(
                name="notice_settings_quiet_hours_whole",
                condition=models.Q(quiet_from=None, quiet_until=None)
                | models.Q(quiet_from__isnull=False, quiet_until__isnull=False),
            ),
            models.CheckConstraint(
                name="notice_settings_muted_known",
                condition=models.Q(muted__contained_by=[kind.value for kind in NoticeKind]),
            ),
        ]

    def __str__(self) -> str:
        return f"notice settings of {self.person_id}"

    @property
    def preferences(self) -> Preferences:
        """As the rules read them."""
        quiet = None
        if self.quiet_from is not None and self.quiet_until is not None:
            quiet = QuietHours(self.quiet_from, self.quiet_until, ZoneInfo(self.time_zone))
        return Preferences(self.email, frozenset(self.muted), quiet)
