"""The lists of the review queue: whose turn it is, what is put aside, what was done; and cases like a case (S36)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.casework import assignments, escalations, similar_cases, snoozes
from approvals.inbox import review_queue
from approvals.inbox.review_queue import Shown, counts, queue
from approvals.models import Signature
from checkpoint import clock
from checkpoint.models import Case
from checkpoint.states import CaseReason, StepStatus
from tests import factories
from tests.case_driver import worker
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


def lists(person: User) -> dict[Shown, list[Case]]:
    return {shown: list(queue(person, shown=shown).rows) for shown in Shown}


def sign(case: Case, person: User) -> None:
    Signature.objects.create(
        case=case, kind="confirm", reason="seen", person=person, person_name=person.username, channel="console",
        step_version=case.step.version, signed_at=clock.now(),
    )  # fmt: skip


def settle(case: Case, *, days_ago: float = 0) -> None:
    at = clock.now() - timedelta(days=days_ago)
    Case.objects.filter(pk=case.pk).update(status="settled", closing="a late receipt", closed_at=at)


def test_each_list_holds_its_cases_and_every_open_one_is_in_the_first_or_aside(time_machine: MovableTime) -> None:
    mine, others, free, aside, signed, done = (factories.case() for _ in range(6))
    ada, grace = worker(mine), worker(mine, "grace")
    assignments.claim(case_id=mine.pk, person=ada, channel="console")
    assignments.claim(case_id=others.pk, person=grace, channel="console")
    snoozes.snooze(case_id=aside.pk, lasting=timedelta(hours=1), person=ada, channel="console", reason="later")
    sign(signed, grace)
    settle(done)
    assert lists(ada) == {
        Shown.WAITING: [mine, others, free, signed],
        Shown.MINE: [mine],
        Shown.UNASSIGNED: [free, signed],
        Shown.SECOND_PERSON: [signed],
        Shown.SNOOZED: [aside],
        Shown.DONE: [done],
    }
    assert counts(ada) == {
        Shown.WAITING: 4, Shown.MINE: 1, Shown.UNASSIGNED: 2, Shown.SECOND_PERSON: 1, Shown.SNOOZED: 1,
    }  # fmt: skip
    time_machine.pass_seconds(3601)
    assert lists(ada)[Shown.SNOOZED] == []
    assert aside in lists(ada)[Shown.WAITING]


def test_a_row_says_who_has_it_until_when_it_is_aside_who_signed_and_that_it_was_escalated() -> None:
    case = factories.case()
    ada = worker(case)
    assignments.claim(case_id=case.pk, person=ada, channel="console")
    made = snoozes.snooze(case_id=case.pk, lasting=timedelta(hours=1), person=ada, channel="console", reason="later")
    escalations.escalate(case_id=case.pk, person=ada, channel="console", reason="urgent")
    sign(case, ada)
    (row,) = queue(ada, shown=Shown.SNOOZED).rows
    shown = {name: getattr(row, name) for name in ("held_by", "aside_until", "escalated", "irreversible")}
    assert shown == {"held_by": "ada", "aside_until": made.ends_at, "escalated": True, "irreversible": True}
    assert [signature.person_name for signature in row.signed] == ["ada"]  # type: ignore[attr-defined]


def test_a_signature_on_what_the_step_was_before_waits_for_nobody() -> None:
    case = factories.case()
    ada = worker(case)
    sign(case, ada)
    factories.move(case.step, StepStatus.COMMITTED)
    assert lists(ada)[Shown.SECOND_PERSON] == []
    assert queue(ada).rows[0].signed == []  # type: ignore[attr-defined]


def test_what_was_done_comes_newest_first_and_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_queue, "PAGE_SIZE", 2)
    cases = [factories.case() for _ in range(5)]
    for days, case in enumerate(cases):
        settle(case, days_ago=days)
    ada, seen, after = worker(cases[0]), list[Case](), None
    for _ in range(3):
        page = queue(ada, shown=Shown.DONE, after=after)
        seen += page.rows
        after = page.following
    assert (seen, after) == (cases, None)


def test_the_queue_takes_the_same_statements_for_one_case_as_for_many() -> None:
    ada = worker(factories.case())
    ada.has_perm("any")

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            queue(ada)
        return len(captured)

    one = statements()
    for _ in range(5):
        sign(factories.case(), ada)
    assert statements() == one


def test_cases_are_alike_with_the_same_reason_tool_and_team_and_it_holds_both_ways() -> None:
    case, other, before = factories.case(), factories.case(), factories.case()
    settle(before)
    elsewhere = factories.workflow(team=factories.team("Legal"))
    factories.case(factories.step(elsewhere, StepStatus.UNCERTAIN))
    another_tool = factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=factories.tool("mail.send"))
    factories.case(another_tool)
    factories.case(factories.step(factories.workflow(), StepStatus.UNCERTAIN), CaseReason.EFFECT_NOT_VISIBLE)
    assert similar_cases.open_ones(case) == [other]
    assert similar_cases.open_ones(other) == [case]
    assert similar_cases.answered(case) == [before]
    before.refresh_from_db()
    assert similar_cases.open_ones(before) == [case, other]


def test_cases_alike_are_few_and_the_search_for_them_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similar_cases, "SHOWN", 2)
    monkeypatch.setattr(similar_cases, "SEARCHED", 3)
    case = factories.case()
    for days in range(4):
        settle(factories.case(), days_ago=days)
        factories.case()
    assert len(similar_cases.open_ones(case)) == len(similar_cases.answered(case)) == 2
    monkeypatch.setattr(similar_cases, "SHOWN", 9)
    assert len(similar_cases.answered(case)) == 3
