"""Tells Django about this package."""

from __future__ import annotations

from django.apps import AppConfig


class CheckpointConfig(AppConfig):
    """The package as a Django app."""

    name = "checkpoint"
    label = "checkpoint"

    def ready(self) -> None:
        """Begins to listen for sign-ins and for changes of accounts, which Django makes in many places."""
        from checkpoint.identity import authentications
        from checkpoint.rows import account_log

        account_log.connect()
        authentications.connect()
