"""Telling those on call: by a person, or by the timer; once, and on record."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User

from approvals.casework import escalations
from approvals.models import Escalation, Notice, NoticeTimer
from approvals.notifying import notice_timers
from checkpoint import audit, clock
from checkpoint.errors import ActionIncomplete, AlreadyEscalated, CaseClosed, Forbidden, NotFound
from checkpoint.models import Case
from tests import factories
from tests.case_driver import at_once, entries, onlooker, raised, stranger, worker

pytestmark = pytest.mark.usefixtures("database")


def escalate(case: Case, person: User, reason: str = "The customer is waiting.") -> Escalation:
    return escalations.escalate(case_id=case.pk, person=person, channel="command", reason=reason)


def on_call(case: Case, name: str = "zoe") -> User:
    return factories.person(name, permissions=["approvals.receive_escalations"], teams=[case.workflow.team])


def told(case: Case) -> list[str]:
    found = Notice.objects.filter(case=case, kind="escalation", person__isnull=False)
    return sorted(notice.person.username for notice in found if notice.person)


def test_those_on_call_are_told_in_the_transaction_that_records_it() -> None:
    case = factories.case()
    ada, zoe = worker(case), on_call(case)
    made = escalate(case, ada)
    assert (made.person_name, made.reason) == ("ada", "The customer is waiting.")
    assert told(case) == [zoe.username]
    assert [entry.actor for entry in entries(case, "escalate")] == ["ada"]
    assert escalate(case, ada) == made, "the same press again"
    with pytest.raises(AlreadyEscalated, match=r"ada escalated it at .* The customer is waiting"):
        escalate(case, worker(case, "grace"))
    assert told(case) == [zoe.username]


def test_of_two_who_escalate_at_once_one_does_and_nobody_is_told_twice() -> None:
    case = factories.case()
    on_call(case)
    people = [worker(case, name) for name in ("ada", "grace", "joan")]
    outcomes = at_once(*[partial(escalate, case, person) for person in people])
    assert [type(refusal) for refusal in raised(outcomes)] == [AlreadyEscalated] * 2
    assert told(case) == ["zoe"]
    assert len(entries(case, "escalate")) == 1


def test_a_case_that_nobody_answers_is_escalated_by_the_timer_and_it_shows() -> None:
    case, answered = factories.case(), factories.case()
    on_call(case)
    for each in (case, answered):
        NoticeTimer.objects.create(kind="escalation", case=each, due_at=clock.now())
    Case.objects.filter(pk=answered.pk).update(status="settled", closing="late", closed_at=case.opened_at)
    assert notice_timers.fire() == 2
    made = Escalation.objects.get()
    assert (made.case, made.person, made.person_name, made.reason) == (case, None, "engine", "nobody answered in time")
    assert told(case) == ["zoe"]
    assert [entry.actor for entry in entries(case, "escalate")] == ["engine"]
    assert list(audit.broken_links()) == []


def test_the_timer_says_nothing_new_about_what_a_person_has_escalated() -> None:
    case = factories.case()
    on_call(case)
    escalate(case, worker(case))
    NoticeTimer.objects.create(kind="escalation", case=case, due_at=clock.now())
    notice_timers.fire()
    assert Escalation.objects.get().person_name == "ada"
    assert told(case) == ["zoe"]


def test_who_may_not_decide_may_not_escalate() -> None:
    case = factories.case()
    with pytest.raises(Forbidden):
        escalate(case, onlooker(case))
    with pytest.raises(NotFound):
        escalate(case, stranger())


def test_an_escalation_needs_an_open_case_and_a_reason() -> None:
    case = factories.case()
    ada = worker(case)
    with pytest.raises(ActionIncomplete, match=r"^reason: "):
        escalate(case, ada, "  ")
    Case.objects.filter(pk=case.pk).update(status="settled", closing="a late receipt", closed_at=case.opened_at)
    with pytest.raises(CaseClosed):
        escalate(case, ada)
