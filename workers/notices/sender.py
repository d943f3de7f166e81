"""Sends what is due, on threads of its own: a mail server that hangs holds up no step, no decision, no other channel.

A round takes notices one at a time until nothing is due. Each is taken in one transaction, sent outside of any (the
receiver may be slow, or may never answer), and recorded in another. Where one destination fails, it rests until the
next round, so that a dead mail server costs a round one deadline, and uses up the tries of few notices.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from celery.signals import worker_process_shutdown
from django.db import connection

from approvals.notifying import letters, notice_timers, outbox
from approvals.notifying.outbox import Delivered, NotDelivered, Taken, Webhook
from checkpoint import crash_points
from workers import draining
from workers.notices import mail, webhooks

log = logging.getLogger(__name__)

SENDERS = 4


@dataclass
class Round:
    """What the senders of one round share."""

    resting: set[str] = field(default_factory=set)

    def send_one(self) -> bool:
        """Deals with one notice; returns whether there was one."""
        taken = outbox.take(resting=frozenset(self.resting))
        if taken is None:
            return False
        if isinstance(taken, Taken):
            ending = _send(taken)
            crash_points.reach("notice/sent", taken.destination)
            outbox.record(taken.delivery_id, ending)
            if isinstance(ending, NotDelivered) and ending.destination_down:
                self.resting.add(taken.destination)
        return True


def run_round() -> None:
    """Writes the reminders and escalations that are due, then sends until nothing is due any more."""
    while notice_timers.fire():
        pass
    due = outbox.count_due(SENDERS)
    if not due:
        return
    this_round = Round()
    with ThreadPoolExecutor(due, "notice-sender") as senders:
        for sent in [senders.submit(_send_until_nothing_is_due, this_round) for _ in range(due)]:
            sent.result()


def _send_until_nothing_is_due(this_round: Round) -> None:
    with closing(connection):
        while not draining.is_draining() and this_round.send_one():
            pass


def _send(taken: Taken) -> Delivered | NotDelivered:
    try:
        letter = letters.letter_of(taken.notice_id)
        if isinstance(taken.to, Webhook):
            return webhooks.send(letter, taken, taken.to)
        return mail.send(letter, taken.to.address)
    except Exception as error:
        # A letter that cannot be written must not stop the others; the reason is on its page.
        log.exception("notice %s could not be sent", taken.notice_id)
        return NotDelivered(f"{type(error).__name__}: {error}", destination_down=False)


_rounds = threading.Lock()
_thread: list[threading.Thread] = []


def start_round() -> None:
    """Runs a round on a thread aside; does nothing while this process is at one already."""
    if _rounds.acquire(blocking=False):
        thread = threading.Thread(target=_run_and_release, name="notices", daemon=True)
        _thread[:] = [thread]
        thread.start()


def _run_and_release() -> None:
    try:
        with closing(connection):
            run_round()
    except Exception:
        log.warning("a round of notices broke off; the next one goes on", exc_info=True)
    finally:
        _rounds.release()


def end(**kwargs: Any) -> None:
    """Called when the process stops in good order: waits for what is being sent, so that it is not sent twice."""
    for thread in _thread:
        thread.join(outbox.SEND_SECONDS)


worker_process_shutdown.connect(end)
