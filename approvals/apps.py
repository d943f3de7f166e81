"""Tells Django about this package."""

from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """The package as a Django app."""

    name = "approvals"
    label = "approvals"

    def ready(self) -> None:
        """The core asks policies and tells of questions without knowing who reads the ones and hears of the others."""
        from approvals.notifying import notices
        from approvals.rules import start_rules
        from checkpoint.gates import rulings
        from checkpoint.rows.announcements import announced

        rulings.use(start_rules.INTERPRETER)
        announced.connect(notices.hear)
