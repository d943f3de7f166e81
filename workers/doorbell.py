"""Sends the doorbell's message. A broker that is away costs a warning: the sweeper comes by every second."""

from __future__ import annotations

import logging
from typing import Any

from kombu.exceptions import KombuError

from workers.celery import app

log = logging.getLogger(__name__)

STALE_SECONDS = 60


def send(**kwargs: Any) -> None:
    """Asks any worker to look for steps that can move."""
    _ring("workers.tasks.drive")


def send_for_bulk(**kwargs: Any) -> None:
    """Asks any worker to look for bulk jobs."""
    _ring("workers.tasks.answer_in_bulk")


def _ring(task: str) -> None:
    try:
        app.send_task(task, retry=False, expires=STALE_SECONDS)
    except (KombuError, OSError) as error:
        log.warning("the doorbell did not ring (%s); the next sweep finds the work", error)
