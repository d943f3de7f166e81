"""Timers go off among verbs that hold workflows: locks are taken in the one order, so neither breaks the other."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction

from approvals.models import Notice, NoticeTimer
from approvals.notifying import notice_timers
from approvals.notifying.notice_rules import NoticeKind
from checkpoint import clock
from checkpoint.rows import workflow_rows
from tests.notice_driver import approver, asked, person
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.usefixtures("database")

# Not pg_stat_activity: a transaction sees that as it was at first.
_WAITS = "SELECT pid FROM pg_locks WHERE NOT granted"


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_WAITS)
        return cursor.fetchone() is not None


def test_a_timer_that_goes_off_while_a_verb_takes_several_workflows_breaks_neither() -> None:
    approver("ada")
    person("boss", groups=("Admin",))
    first, second = asked(), asked()
    assert first.workflow_id < second.workflow_id
    hour_ago = clock.now() - timedelta(hours=1)
    # The escalation locks the second workflow; that the reminder refers to the first is checked at the commit.
    NoticeTimer.objects.filter(case=first, kind=NoticeKind.REMINDER).update(due_at=hour_ago)
    NoticeTimer.objects.filter(case=second, kind=NoticeKind.ESCALATION).update(due_at=hour_ago)
    outcome: list[Any] = []

    def go_off() -> None:
        try:
            outcome.append(notice_timers.fire())
        except Exception as error:
            outcome.append(error)
        finally:
            connections.close_all()

    firing = threading.Thread(target=go_off)
    with transaction.atomic():
        workflow_rows.lock([first.workflow_id])
        firing.start()
        wait_for(somebody_waits)
        workflow_rows.lock([second.workflow_id])
    firing.join()
    assert outcome == [2]
    kinds = set(Notice.objects.exclude(kind=NoticeKind.ASKED).values_list("kind", "person__username"))
    assert kinds == {("reminder", "ada"), ("escalation", "boss")}
