"""Tells Django about this package."""

from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    """The package as a Django app."""

    name = "approvals"
    label = "approvals"

    def ready(self) -> None:
        """Notices are written in the transactions of the core, which does not know of them."""
        from approvals import notices
        from checkpoint.announcements import announced

        announced.connect(notices.hear)
