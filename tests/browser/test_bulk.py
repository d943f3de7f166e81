"""Answering many at once in Chromium: from ticks in the queue to the results, with and without JavaScript."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import Page, expect

from approvals.bulk import work
from approvals.models import BulkJob, Decision
from checkpoint.models import Case
from checkpoint.states import StepStatus
from tests import factories
from tests.browser.test_accessibility import PHONE, violations
from tests.bulk_driver import answer_next, approval, cases, decider, results, run

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]
REASON = "The bank confirmed that nothing was booked."


@pytest.fixture
def ada(database: object) -> User:
    return decider()


@pytest.fixture
def asked(ada: User) -> list[Case]:
    return cases(4)


@pytest.fixture
def worker(database: object) -> Iterator[None]:
    """Somebody who works on bulk jobs meanwhile, as a real worker does."""
    over = threading.Event()

    def body() -> None:
        while not over.wait(0.05):
            work.work(seconds=0)
        connection.close()

    thread = threading.Thread(target=body)
    thread.start()
    yield
    over.set()
    thread.join()


def prepare(page: Page, answer: str, button: str, *, reason: str = REASON) -> None:
    """Fills the form above the queue and presses one of its buttons."""
    if not page.get_by_label("Reason").is_visible():
        page.get_by_text("Answer many at once").click()
    page.get_by_role("combobox", name="Answer").select_option(answer)
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name=button).click()


def tick(page: Page, case: Case) -> Any:
    return page.get_by_role("checkbox", name=f"Tick case …{str(case.pk)[-8:]}")


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
def test_from_ticks_to_results(
    visit: Visit, ada: User, asked: list[Case], javascript: bool, screen: dict[str, Any]
) -> None:
    page = visit(ada, "/review/", javascript=javascript, **screen)
    for case in asked[:2]:
        tick(page, case).check()
    prepare(page, "retry", "Preview the ticked")
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry 2 cases")
    expect(page.get_by_text("it will happen twice")).to_be_visible()
    assert not Decision.objects.exists()
    page.get_by_role("button", name="Retry 2 cases").click()
    expect(page.get_by_role("status")).to_have_text("0 of 2")
    answer_next()
    if not javascript:
        page.get_by_role("link", name="Look again").click()
    expect(page.get_by_role("status")).to_have_text("1 of 2")
    run(BulkJob.objects.get())
    if not javascript:
        page.get_by_role("link", name="Look again").click()
    expect(page.get_by_role("heading", name="All have their result")).to_be_visible()
    expect(page.get_by_role("cell", name="done")).to_have_count(2)
    assert set(Decision.objects.values_list("case", flat=True)) == {case.pk for case in asked[:2]}


def test_all_of_a_narrowed_list_goes_beyond_the_page(visit: Visit, ada: User, worker: None) -> None:
    cases(52)
    ticket = factories.tool("ticket.open", factories.TICKET)
    other = factories.case(factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=ticket))
    page = visit(ada, "/review/?tool=card.charge")
    prepare(page, "abandon", "Preview all 52 cases")
    expect(page.get_by_role("heading", level=1)).to_have_text("Abandon 52 cases")
    page.get_by_role("button", name="Abandon 52 cases").click()
    expect(page.get_by_role("status")).to_have_text("52 of 52", timeout=60_000)
    page.get_by_role("link", name="More items").click()
    expect(page.get_by_role("cell", name="done")).to_have_count(2)
    assert Case.objects.get(status="open") == other


def test_requests_are_ticked_beside_cases_and_answered_apart(visit: Visit, ada: User, asked: list[Case]) -> None:
    request = approval()
    page = visit(ada, "/review/")
    box = page.get_by_role("checkbox", name=f"Tick request …{str(request.pk)[-8:]}")
    box.check()
    tick(page, asked[0]).check()
    prepare(page, "approve", "Preview the ticked")
    expect(page.get_by_text("1 of the selected are not")).to_be_visible()
    page.goto("/review/")
    box.check()
    prepare(page, "approve", "Preview the ticked")
    page.get_by_role("button", name="Approve 1 request for approval").click()
    expect(page.get_by_role("status")).to_have_text("0 of 1")
    run(BulkJob.objects.get())
    expect(page.get_by_role("heading", name="All have their result")).to_be_visible()
    page.get_by_role("link", name="May this run?").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("run")


def test_ticks_outlast_the_polls_and_the_page_ticks_all_at_once(visit: Visit, ada: User, asked: list[Case]) -> None:
    page = visit(ada, "/review/")
    tick(page, asked[1]).check()
    expect(page.get_by_role("button", name="Preview the ticked (1)")).to_be_visible()
    page.get_by_label("Reason").fill("The bank con")
    late = factories.case()
    page.get_by_role("link", name="1 new: show it").click()
    expect(tick(page, late)).to_be_visible()
    expect(tick(page, asked[1])).to_be_checked()
    expect(tick(page, late)).not_to_be_checked()
    expect(page.get_by_label("Reason")).to_have_value("The bank con")
    page.get_by_role("checkbox", name="Tick all on this page").check()
    expect(page.get_by_role("button", name="Preview the ticked (5)")).to_be_visible()
    page.get_by_role("checkbox", name="Tick all on this page").uncheck()
    expect(tick(page, late)).not_to_be_checked()


def test_by_keyboard_alone(visit: Visit, ada: User, asked: list[Case]) -> None:
    page = visit(ada, "/review/")
    for key in "jxjjx":
        page.keyboard.press(key)
    expect(tick(page, asked[0])).to_be_checked()
    expect(tick(page, asked[2])).to_be_checked()
    page.get_by_role("combobox", name="Answer").focus()
    page.keyboard.type("retry")
    page.keyboard.press("Tab")
    page.keyboard.type("xjk, because")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry 2 cases")
    expect(page.get_by_text("xjk, because")).to_be_visible()
    page.get_by_role("button", name="Retry 2 cases").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    answer_next()
    expect(page.get_by_role("status")).to_have_text("1 of 2")
    page.get_by_role("button", name="Abort before the next one").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 will not be answered by this job.")).to_be_visible()
    assert results(BulkJob.objects.get()) == ["done", "pending"]


def test_a_refusal_keeps_the_selection(visit: Visit, ada: User, asked: list[Case]) -> None:
    page = visit(ada, "/review/")
    tick(page, asked[0]).check()
    prepare(page, "retry", "Preview the ticked", reason="   ")
    expect(page.get_by_text("Say in at most 4000 characters why")).to_be_visible()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.get_by_label("Reason").fill(REASON)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry 1 case")


def test_a_double_press_starts_one_job(visit: Visit, ada: User, asked: list[Case]) -> None:
    page = visit(ada, "/review/")
    tick(page, asked[0]).check()
    page.get_by_role("combobox", name="Answer").select_option("retry")
    page.get_by_label("Reason").fill(REASON)
    page.get_by_role("button", name="Preview the ticked").dblclick()
    expect(page.get_by_role("button", name="Discard")).to_be_visible()
    assert BulkJob.objects.count() == 1


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, ada: User, asked: list[Case], scheme: str, screen: dict[str, Any]) -> None:
    page = visit(ada, "/review/", color_scheme=scheme, bypass_csp=True, **screen)

    def check(name: str) -> None:
        while page.locator("details:not([open]) > summary").count():
            page.locator("details:not([open]) > summary").first.click()
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"

    check("queue")
    tick(page, asked[0]).check()
    prepare(page, "retry", "Preview all 4 cases")
    expect(page.get_by_role("button", name="Discard")).to_be_visible()
    check("draft")
    page.get_by_role("button", name="Retry 4 cases").click()
    expect(page.get_by_role("status")).to_have_text("0 of 4")
    check("running")
    run(BulkJob.objects.get())
    expect(page.get_by_role("heading", name="All have their result")).to_be_visible()
    check("done")
    page.goto("/bulk-jobs/")
    check("list")
    page.goto("/review/?tool=nothing")
    check("narrowed to nothing")
