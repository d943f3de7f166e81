"""A case that is put aside stays open and counted, and comes back by itself (S36)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.casework import snoozes
from approvals.models import NoticeTimer, Snooze
from approvals.notifying import notice_timers
from checkpoint import clock
from checkpoint.errors import ActionIncomplete, AlreadySnoozed, CaseClosed, Forbidden, NotFound
from checkpoint.models import Case
from checkpoint.queries import open_question_count
from tests import factories
from tests.case_driver import at_once, entries, onlooker, raised, stranger, worker
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


def snooze(case: Case, person: User, hours: float = 4, reason: str = "The bank answers on Monday.") -> Snooze:
    lasting = timedelta(hours=hours)
    return snoozes.snooze(case_id=case.pk, lasting=lasting, person=person, channel="command", reason=reason)


def test_s36_a_snoozed_case_is_open_and_counted_and_comes_back_by_itself(time_machine: MovableTime) -> None:
    case = factories.case()
    ada = worker(case)
    made = snooze(case, ada)
    assert timedelta(hours=3.9) < made.ends_at - made.snoozed_at <= timedelta(hours=4)
    assert snoozes.current(case) == made
    assert open_question_count(ada) == 1
    time_machine.pass_seconds(4 * 3600 + 1)
    assert snoozes.current(case) is None
    assert open_question_count(ada) == 1
    assert snooze(case, worker(case, "grace")).person_name == "grace"


def test_anybody_who_may_decide_wakes_it_and_waking_it_again_changes_nothing() -> None:
    case = factories.case()
    snooze(case, worker(case))
    grace = worker(case, "grace")
    woken = snoozes.wake(case_id=case.pk, person=grace, channel="command")
    assert woken is not None
    assert (woken.woken_by_name, snoozes.current(case)) == ("grace", None)
    assert snoozes.wake(case_id=case.pk, person=grace, channel="command") is None
    assert len(entries(case, "wake")) == 1


def test_the_same_press_again_is_the_same_snooze_and_another_persons_is_told_of_it() -> None:
    case = factories.case()
    ada = worker(case)
    assert snooze(case, ada) == snooze(case, ada)
    assert len(entries(case, "snooze")) == 1
    with pytest.raises(AlreadySnoozed, match=r"ada snoozed it until .* The bank answers on Monday"):
        snooze(case, worker(case, "grace"))


def test_of_two_who_snooze_at_once_one_does() -> None:
    case = factories.case()
    people = [worker(case, name) for name in ("ada", "grace", "joan")]
    outcomes = at_once(*[partial(snooze, case, person) for person in people])
    assert [type(refusal) for refusal in raised(outcomes)] == [AlreadySnoozed] * 2
    assert Snooze.objects.count() == 1


@pytest.mark.parametrize("hours", [0, -1, 0.01, 168.1, 10_000])
def test_a_snooze_ends_within_bounds(hours: float) -> None:
    case = factories.case()
    with pytest.raises(ActionIncomplete, match=r"^hours: .* at the latest in 168 hours"):
        snooze(case, worker(case), hours)


@pytest.mark.parametrize("reason", ["", "x" * 4001])
def test_a_snooze_says_what_it_waits_for(reason: str) -> None:
    case = factories.case()
    with pytest.raises(ActionIncomplete, match=r"^reason: "):
        snooze(case, worker(case), reason=reason)


def test_who_may_not_decide_may_not_snooze_or_wake() -> None:
    case = factories.case()
    for person, refusal in ((onlooker(case), Forbidden), (stranger(), NotFound)):
        with pytest.raises(refusal):
            snooze(case, person)
        with pytest.raises(refusal):
            snoozes.wake(case_id=case.pk, person=person, channel="command")


def test_a_snooze_is_over_with_its_case() -> None:
    case = factories.case()
    ada = worker(case)
    snooze(case, ada)
    Case.objects.filter(pk=case.pk).update(status="settled", closing="a late receipt", closed_at=case.opened_at)
    assert snoozes.current(case) is None
    with pytest.raises(CaseClosed):
        snooze(case, ada)


def timers(case: Case) -> dict[str, Any]:
    return {timer.kind: timer.due_at for timer in NoticeTimer.objects.filter(case=case)}


def test_reminder_and_escalation_wait_for_the_end_of_a_snooze_and_come_when_it_is_ended_sooner() -> None:
    case = factories.case()
    now = clock.now()
    for kind, hours in (("reminder", 4), ("escalation", 24)):
        NoticeTimer.objects.create(kind=kind, case=case, due_at=now + timedelta(hours=hours))
    ada = worker(case)
    made = snooze(case, ada, hours=48)
    assert timers(case) == {"reminder": made.ends_at, "escalation": made.ends_at}
    snoozes.wake(case_id=case.pk, person=ada, channel="command")
    due = {kind: (at - case.opened_at) / timedelta(hours=1) for kind, at in timers(case).items()}
    assert due == {"reminder": pytest.approx(4, abs=0.1), "escalation": pytest.approx(24, abs=0.1)}


def test_a_timer_that_goes_off_this_moment_and_a_snooze_do_not_wait_for_each_other() -> None:
    case = factories.case()
    for kind in ("reminder", "escalation"):
        NoticeTimer.objects.create(kind=kind, case=case, due_at=clock.now())
    ada = worker(case)
    for _ in range(3):
        outcomes = at_once(notice_timers.fire, partial(snooze, case, ada), notice_timers.fire)
        assert raised(outcomes) == []
