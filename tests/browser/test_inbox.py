"""The inbox in Chromium: by keyboard, live without moving, two people at once, and with nothing but polling."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from checkpoint import clock
from checkpoint.models import Case
from checkpoint.states import StepStatus
from tests import factories
from tests.browser.story import Story
from tests.browser.test_console import give_elsewhere

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]


def asked(story: Story, *, minutes_ago: float = 0, goal: str = "Pay the florist.") -> Case:
    """Another question, as the engine opens it: with an entry in the audit."""
    of = factories.workflow(team=story.refund.team, goal=goal)
    step = factories.step(of, StepStatus.UNCERTAIN)
    case = factories.case(step, opened_at=clock.now() - timedelta(minutes=minutes_ago))
    factories.audited(of, "question", f"step {step.name}", before="started", after="uncertain")
    return case


def test_a_new_case_shows_within_a_second_and_moves_nothing(visit: Visit, story: Story) -> None:
    page = visit(story.approver, "/review/")
    expect(page.locator("#live")).to_have_text("Live")
    expect(page).to_have_title(re.compile(r"^\(2\) Waiting"))
    page.keyboard.press("j")
    row = page.locator(f"#case-{story.charge.pk}")
    before, begins = row.bounding_box(), time.monotonic()
    older = asked(story, minutes_ago=600)
    expect(page.get_by_role("link", name="1 new: show it")).to_be_visible(timeout=3_000)
    seconds = time.monotonic() - begins
    assert seconds < 2, f"{seconds:.2f} s on a machine that does other things too"
    assert row.bounding_box() == before
    expect(page.locator(f"#row-{story.charge.pk}")).to_be_focused()
    expect(page).to_have_title(re.compile(r"^\(3\) Waiting"))
    assert "data:image/svg" in str(page.locator('link[rel="icon"]').get_attribute("href"))
    page.keyboard.press("n")
    expect(page.locator("#queue tbody tr").first).to_have_id(f"case-{older.pk}")
    expect(page.locator(f"#row-{story.charge.pk}")).to_be_focused()
    expect(page.get_by_text("1 new")).to_have_count(0)


def test_the_tabs_of_a_browser_share_one_stream(visit: Visit, story: Story) -> None:
    first = visit(story.approver, "/review/")
    expect(first.locator("#live")).to_have_text("Live")
    second = first.context.new_page()
    second.goto("/review/?list=unassigned")
    expect(second.locator("#live")).to_have_text("Live")
    asked(story)
    for tab in (first, second):
        expect(tab.get_by_role("link", name="1 new: show it")).to_be_visible()
    first.close()
    asked(story, goal="Pay the gardener.")
    expect(second.get_by_role("link", name="2 new: show them")).to_be_visible()


def test_two_people_at_once(visit: Visit, story: Story) -> None:
    other = factories.person("linus", groups=["Approver"], teams=[story.refund.team])
    ada, linus = visit(story.approver, "/review/"), visit(other, "/review/")
    for page in (ada, linus):
        expect(page.locator("#live")).to_have_text("Live")
    ada.keyboard.press("j")
    ada.keyboard.press("c")
    expect(ada.locator(f"#case-{story.charge.pk}")).to_contain_text("you have it")
    expect(linus.locator(f"#case-{story.charge.pk}")).to_contain_text("ada has it")
    expect(linus.locator(f"#claim-{story.charge.pk}")).to_have_count(0)
    give_elsewhere(story)
    for page in (ada, linus):
        expect(page.locator(f"#case-{story.charge.pk}")).to_contain_text("grace2 answered retry")
    ada.reload()
    expect(ada.locator(f"#case-{story.charge.pk}")).to_have_count(0)


def test_without_a_stream_it_polls(visit: Visit, story: Story) -> None:
    page = visit(story.approver, "/nowhere/")

    def refuse(route: Route) -> None:
        route.fulfill(status=204)

    page.route("**/review/changes", refuse)
    page.goto("/review/")
    expect(page.locator("#live")).to_have_text("Looks again every 3 seconds")
    asked(story)
    expect(page.get_by_role("link", name="1 new: show it")).to_be_visible()


def test_keys_are_told_and_searching_and_keeping_a_view_works(visit: Visit, story: Story) -> None:
    asked(story, goal="Pay the gardener.")
    page = visit(story.approver, "/review/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("claims the case of the row")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("gardener")
    page.keyboard.press("Enter")
    expect(page.locator("#queue tbody tr")).to_have_count(1)
    page.get_by_text("Keep this view").click()
    page.get_by_label("Name").fill("The garden")
    page.get_by_role("button", name="Keep", exact=True).click()
    page.goto("/review/")
    expect(page.locator("#queue tbody tr")).to_have_count(3)
    page.get_by_role("link", name="The garden").click()
    expect(page.locator("#queue tbody tr")).to_have_count(1)


def test_without_javascript_claiming_and_searching_work(visit: Visit, story: Story) -> None:
    page = visit(story.approver, "/review/?search=order", javascript=False)
    page.get_by_role("button", name=re.compile("Claim")).first.click()
    expect(page.get_by_text("you have it")).to_be_visible()
