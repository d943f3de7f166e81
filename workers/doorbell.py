"""Sends the doorbell's message. A broker that is away costs a warning: the sweeper comes by every second."""

from __future__ import annotations

import logging
from typing import Any

from kombu.exceptions import KombuError

log = logging.getLogger(__name__)


def send(**kwargs: Any) -> None:
    """Asks any worker to look."""
    from workers.tasks import drive

    try:
        drive.apply_async(retry=False, expires=60)
    except (KombuError, OSError) as error:
        log.warning("the doorbell did not ring (%s); the next sweep finds the work", error)
