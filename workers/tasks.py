"""Celery's tasks: each translates, calls once, and is only a doorbell. Extra arguments are accepted and ignored."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from approvals.bulk import work as bulk_work
from checkpoint import occasions
from checkpoint.people import ENGINE
from checkpoint.storage import stored_bytes
from checkpoint.trail import audit_anchors
from workers import doorbell, process, sweeper
from workers.notices import sender

# Short, because one process may be all there is, and the engine needs it too.
BULK_TURN_SECONDS = 1.0


@shared_task(name="workers.tasks.drive")
def drive(*args: Any, **kwargs: Any) -> None:
    """Works until nothing is ready. Doubled, late or lost, it changes nothing."""
    process.current().engine.run_until_idle()


@shared_task(name="workers.tasks.sweep")
def sweep(*args: Any, **kwargs: Any) -> None:
    """Finds what can move and has nobody on it, and works on it here."""
    with occasions.begin(lambda: ENGINE):
        due = sweeper.sweep()
    if bulk_work.anything_left():
        doorbell.send_for_bulk()
    if due:
        process.current().engine.run_until_idle()


@shared_task(name="workers.tasks.answer_in_bulk")
def answer_in_bulk(*args: Any, **kwargs: Any) -> None:
    """One turn on a bulk job; the next one is another message, so that other tasks get theirs between."""
    if bulk_work.work(seconds=BULK_TURN_SECONDS):
        doorbell.send_for_bulk()


@shared_task(name="workers.tasks.anchor_audit")
def anchor_audit(*args: Any, **kwargs: Any) -> None:
    """Signs how far the audit chains have come."""
    while audit_anchors.anchor().more:
        pass


@shared_task(name="workers.tasks.send_notices")
def send_notices(*args: Any, **kwargs: Any) -> None:
    """Has what is due sent, on a thread aside: the engine needs this process."""
    sender.start_round()


@shared_task(name="workers.tasks.collect_orphans")
def collect_orphans(*args: Any, **kwargs: Any) -> None:
    """Takes away what is in storage and belongs to nothing; a few at a time, because the engine needs this process."""
    stored_bytes.collect()
