"""Tells Django about this package."""

from __future__ import annotations

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """The package as a Django app."""

    name = "workers"
    label = "workers"

    def ready(self) -> None:
        """Connects the doorbell, and what a worker does at its start and end."""
        from celery.signals import worker_process_init, worker_shutdown

        from approvals.bulk.jobs import started
        from checkpoint.doorbell import rung
        from workers import doorbell, process

        rung.connect(doorbell.send)
        started.connect(doorbell.send_for_bulk)
        worker_process_init.connect(process.begin)
        worker_shutdown.connect(process.end)
