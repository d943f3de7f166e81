"""Lists are bounded, paged by key, narrowed, and carry no payloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.inbox.review_queue import queue
from checkpoint import queries, workflow_lists
from checkpoint.models import Case, Workflow
from checkpoint.states import StepStatus
from checkpoint.workflow_lists import WorkflowFilter, workflow_page
from tests import factories

pytestmark = pytest.mark.usefixtures("database")


def statements(read: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        read()
    return [query["sql"] for query in captured]


def test_pages_of_workflows_do_not_overlap_and_leave_none_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow_lists, "PAGE_SIZE", 2)
    made = [factories.workflow() for _ in range(5)]
    auditor = factories.person("ada", groups=["Auditor"])
    seen: list[Workflow] = []
    before = None
    for _ in range(3):
        page = workflow_page(auditor, WorkflowFilter(), before=before)
        seen += page.rows
        before = page.following
    assert before is None
    assert seen == made[::-1]


def test_a_filter_keeps_what_matches() -> None:
    refund = factories.workflow(goal="Refund order 1007 (50%)")
    invoice = factories.workflow(kind="invoicing", goal="Send invoices", team=factories.team("Legal"))
    factories.case(factories.step(refund, StepStatus.UNCERTAIN))
    auditor = factories.person("ada", groups=["Auditor"])
    for narrowed, expected in [
        (WorkflowFilter(status="needs_review"), refund),
        (WorkflowFilter(kind="invoicing"), invoice),
        (WorkflowFilter(team="legal"), invoice),
        (WorkflowFilter(asked=True), refund),
        (WorkflowFilter(search="order 1007 (50%)"), refund),
        (WorkflowFilter(search="INVOIC"), invoice),
        (WorkflowFilter(search=str(refund.pk)[-8:]), refund),
        (WorkflowFilter(search=str(invoice.pk).upper()), invoice),
    ]:
        assert list(workflow_page(auditor, narrowed).rows) == [expected], narrowed
    assert not workflow_page(auditor, WorkflowFilter(search="_")).rows


def test_progress_tells_what_was_read_from_what_only_stands_on_a_word() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.VERIFIED)
    unread = factories.step(workflow, StepStatus.COMMITTED)
    factories.move(unread, StepStatus.VERIFIED, standing="attested")
    factories.step(workflow)
    assert workflow_lists.progress_of([workflow])[workflow.pk] == workflow_lists.Progress(verified=2, total=3, unread=1)


def test_lists_take_few_statements_and_no_payloads() -> None:
    for _ in range(3):
        factories.case()
    auditor = factories.person("ada", groups=["Auditor"])
    auditor.has_perm("any")

    def read() -> None:
        rows = workflow_page(auditor, WorkflowFilter()).rows
        assert [(row.status, row.team.name) for row in rows] == [("needs_review", "Billing")] * 3
        assert len(workflow_lists.progress_of(rows)) == 3
        assert [case.step.status for case in queue(auditor).rows] == ["uncertain"] * 3

    sql = statements(read)
    assert len(sql) == 4
    for column in ('"input"', '"arguments"', '"findings"', '"schema"', '"template"', '"workflow"."goal",'):
        assert column not in "".join(sql)


def test_the_queue_puts_irreversible_effects_first_then_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = factories.tool("ticket.open", factories.TICKET)

    def asked(**fields: Any) -> Any:
        return factories.case(factories.step(factories.workflow(), StepStatus.UNCERTAIN, **fields))

    mild_old, grave_old, mild_new, grave_new = asked(tool_version=ticket), asked(), asked(tool_version=ticket), asked()
    expected = [grave_old, grave_new, mild_old, mild_new]
    auditor = factories.person("ada", groups=["Auditor"])
    assert list(queue(auditor).rows) == expected
    monkeypatch.setattr("approvals.inbox.review_queue.PAGE_SIZE", 1)
    seen: list[Case] = []
    after = None
    for _ in expected:
        page = queue(auditor, after=after)
        seen += page.rows
        after = page.following
    assert (seen, after) == (expected, None)


def test_a_long_plan_comes_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "STEPS_SHOWN", 2)
    workflow = factories.workflow()
    steps = [
        factories.step(workflow, position=position, name=name) for position, name in [(1, "b"), (1, "c"), (2, "a")]
    ]
    first = queries.plan(workflow)
    assert list(first.rows) == steps[:2]
    assert list(queries.plan(workflow, after=first.following).rows) == steps[2:]


def test_a_plan_takes_the_same_statements_for_one_step_as_for_many() -> None:
    one, many = factories.workflow(), factories.workflow()
    factories.step(one, StepStatus.VERIFIED)
    for status in StepStatus:
        factories.step(many, status)
    counts = [len(statements(lambda w=workflow: list(queries.plan(w).rows))) for workflow in (one, many)]  # type: ignore[misc]
    assert counts[0] == counts[1]


def test_the_audit_trail_is_newest_first_and_bounded() -> None:
    workflow = factories.workflow()
    for number in range(3):
        factories.audited(workflow, "start", f"step {number}")
    assert [entry["subject"] for entry in queries.audit_trail(workflow, limit=2)] == ["step 2", "step 1"]
