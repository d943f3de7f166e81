"""Tells the workers that something may move. Only a doorbell: a lost, doubled or late ring changes nothing.

The sweeper finds every workflow that can move and has nobody on it, so a lost ring costs a second, not a workflow.
"""

from __future__ import annotations

from django.db import transaction
from django.dispatch import Signal

rung = Signal()


def ring_on_commit() -> None:
    """Rings once the open transaction has committed; at once outside of one."""
    transaction.on_commit(_ring, robust=True)


def _ring() -> None:
    rung.send_robust(sender=None)
