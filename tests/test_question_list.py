"""Cases and requests for approval in one list: by urgency, page by page, each list with what belongs to it."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from approvals.inbox.question_list import counts, next_question, questions
from approvals.inbox.review_queue import Shown
from checkpoint import clock
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Approval, Step
from checkpoint.queries import open_question_count
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import StepStatus
from tests import factories
from tests.approval_driver import answer, approver, requested
from tests.console_driver import signed_in
from tests.journal_driver import effect

pytestmark = pytest.mark.usefixtures("database")

_minutes = itertools.count(1)


def ada() -> User:
    return factories.person("ada", groups=["Approver"], teams=[factories.team()])


def asked(noun: str, *, grave: bool) -> UUID:
    """A question, older than those that were asked before it."""
    tool = factories.tool("card.charge") if grave else factories.tool("ticket.open", factories.TICKET)
    at = clock.now() - timedelta(minutes=next(_minutes))
    if noun == "case":
        about = factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=tool)
        return factories.case(about, opened_at=at).pk
    return request(factories.step(factories.workflow(), tool_version=tool), requested_at=at).pk


def request(about: Step, **fields: Any) -> Approval:
    """A request as the engine makes it."""
    rule = ApprovalRule(needed=2).to_json()
    made = {
        "workflow": about.workflow, "step": about, "rule": rule, "arguments_hash": about.arguments_hash,
        "policy_version": factories.policy(), "tool_version": about.tool_version,
        "expires_at": clock.now() + timedelta(hours=1),
    }  # fmt: skip
    return Approval.objects.create(**made | fields)


def test_what_cannot_be_undone_comes_first_then_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("approvals.inbox.review_queue.PAGE_SIZE", 2)
    light = [asked(noun, grave=False) for noun in ("case", "approval", "approval", "case")]
    grave = [asked(noun, grave=True) for noun in ("approval", "case", "case")]
    person, found, after = ada(), list[UUID](), None
    while True:
        page = questions(person, after=after)
        found += [question.about.pk for question in page.rows]
        after = page.following
        if after is None:
            break
    assert found == [*reversed(grave), *reversed(light)]
    first = next_question(person)
    assert first is not None
    assert (first.noun, first.about.pk) == ("case", grave[-1])


def test_each_list_has_what_belongs_to_it() -> None:
    asked("case", grave=False)
    asked("approval", grave=False)
    person = ada()
    found = {shown: [question.noun for question in questions(person, shown=shown).rows] for shown in Shown}
    both = ["approval", "case"]
    assert found == {
        Shown.WAITING: both, Shown.UNASSIGNED: both, Shown.MINE: [], Shown.SECOND_PERSON: [], Shown.SNOOZED: [],
        Shown.DONE: [],
    }  # fmt: skip
    assert counts(person) == {shown: str(len(rows)) for shown, rows in found.items() if shown is not Shown.DONE}
    assert open_question_count(person) == 2


def test_a_request_that_one_of_two_approved_waits_for_a_second_person_and_then_is_done() -> None:
    workflow, _ = requested(needed=2)
    approval, ann = Approval.objects.get(), approver("ann")
    answer(approval, ann)
    (row,) = questions(ann, shown=Shown.SECOND_PERSON).rows
    assert (row.about, getattr(row.about, "given", 0)) == (approval, 1)
    answer(approval, approver("bob"), DecisionKind.REJECT)
    assert [question.about for question in questions(ann, shown=Shown.DONE).rows] == [approval]
    assert questions(ann).rows == []
    assert workflow.approvals.count() == 1


def test_a_plan_is_one_row_and_as_grave_as_its_gravest_step() -> None:
    requested(effect("one"), effect("two", cents=2), scope="plan")
    person = approver()
    (row,) = questions(person).rows
    assert (getattr(row.about, "others", 0), getattr(row.about, "irreversible", None)) == (1, True)
    assert open_question_count(person) == 1


def test_nobody_sees_what_is_not_theirs() -> None:
    asked("case", grave=True)
    asked("approval", grave=True)
    stranger = factories.person("eve", groups=["Approver"], teams=[factories.team("Legal")])
    assert questions(stranger).rows == []
    assert counts(stranger)[Shown.WAITING] == "0"


def test_the_page_lists_both_and_its_head_counts_both() -> None:
    requested(effect("one"), effect("two", cents=2), scope="plan", needed=2)
    factories.case()
    person = factories.person("ann", groups=["Approver"], teams=[factories.team("Default"), factories.team("Billing")])
    page = signed_in(person).get("/review/").text
    for shown in (
        "May this plan run?",
        "and 1 more wait",
        "0 of 2 approved",
        "Did it happen?",
        '<span class="count">2',
    ):
        assert shown in page, shown
