"""Tells Django about this package."""

from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """The package as a Django app."""

    name = "approvals"
    label = "approvals"

    def ready(self) -> None:
        """The core asks policies and tells of questions without knowing who reads the ones and hears of the others."""
        from approvals import notices, start_rules
        from checkpoint import rulings
        from checkpoint.announcements import announced

        rulings.use(start_rules.INTERPRETER)
        announced.connect(notices.hear)
