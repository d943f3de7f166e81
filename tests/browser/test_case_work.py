"""What people do about a case, in Chromium: with and without JavaScript, on laptop and phone; axe finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.casework import assignments, comments, snoozes
from approvals.models import Assignment, Attachment, Comment, Signature, Snooze
from tests import factories
from tests.browser.story import Story
from tests.browser.test_accessibility import violations
from tests.case_driver import put_in_force

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}}
Visit = Callable[..., Page]
BOTH = pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Path:
    """Where the bytes are."""
    settings.MEDIA_ROOT = tmp_path / "artifacts"
    return tmp_path


def case_address(story: Story) -> str:
    return f"/cases/{story.charge.pk}/"


def open_form(page: Page, summary: str) -> None:
    page.locator("summary", has_text=summary).click()


@BOTH
def test_a_case_is_claimed_and_released_in_place(visit: Visit, story: Story, javascript: bool) -> None:
    page = visit(story.approver, case_address(story), javascript=javascript)
    page.get_by_role("button", name="Claim").click()
    expect(page.get_by_text("you have it")).to_be_visible()
    assert Assignment.objects.get().person_name == "ada"
    page.goto("/review/?list=mine")
    page.get_by_role("link", name="Did it happen?").click()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("nobody has it")).to_be_visible()


@BOTH
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
def test_a_case_is_snoozed_found_and_woken(
    visit: Visit, story: Story, javascript: bool, screen: dict[str, Any]
) -> None:
    page = visit(story.approver, case_address(story), javascript=javascript, **screen)
    open_form(page, "Snooze it for a while")
    page.get_by_label("For", exact=True).select_option("4")
    page.get_by_label("What it waits for").fill("The bank answers tomorrow.")
    page.get_by_role("button", name="Snooze").click()
    expect(page.get_by_text("snoozed, back")).to_be_visible()
    assert Snooze.objects.get().reason == "The bank answers tomorrow."
    page.goto("/review/")
    expect(page.get_by_role("link", name="Did it happen?")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Main").get_by_text("2 open")).to_be_visible()
    page.get_by_role("navigation", name="Lists").get_by_role("link", name="Snoozed 1").click()
    page.get_by_role("link", name="Did it happen?").click()
    page.get_by_role("button", name="Wake").click()
    expect(page.get_by_text("snoozed, back")).to_have_count(0)


@BOTH
def test_comments_are_said_and_seen(visit: Visit, story: Story, javascript: bool) -> None:
    page = visit(story.approver, case_address(story), javascript=javascript)
    for text in ("I asked the bank.", "They answer on Monday."):
        page.get_by_label("Comment", exact=True).fill(text)
        page.get_by_role("button", name="Comment", exact=True).click()
        expect(page.locator("#comments blockquote", has_text=text)).to_be_visible()
        expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    assert Comment.objects.count() == 2


@BOTH
def test_a_file_is_brought_and_downloaded(visit: Visit, story: Story, javascript: bool, storage: Path) -> None:
    file = storage / "statement.html"
    file.write_text("<script>document.title='owned'</script>")
    page = visit(story.approver, case_address(story), javascript=javascript)
    open_form(page, "Attach a file as evidence")
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_label("What it shows").fill("The bank's statement.")
    page.get_by_role("button", name="Attach").click()
    link = page.get_by_role("link", name="statement.html")
    expect(link).to_be_visible()
    with page.expect_download() as download:
        link.click()
    assert Path(download.value.path()).read_text() == file.read_text()
    expect(page).not_to_have_title("owned")
    assert Attachment.objects.get().person_name == "ada"


@BOTH
def test_a_refusal_keeps_what_was_typed(visit: Visit, story: Story, javascript: bool) -> None:
    page = visit(story.approver, case_address(story), javascript=javascript)
    open_form(page, "Snooze it for a while")
    page.get_by_label("What it waits for").fill("My own words.")
    grace = factories.person("grace.hopper", groups=["Approver"], teams=[story.refund.team])
    if javascript:
        page.route("**/cases/*/", lambda route: route.abort())  # the page does not learn of it by itself
    snoozes.snooze(
        case_id=story.charge.pk, lasting=timedelta(hours=1), person=grace, channel="console", reason="Her words."
    )
    page.get_by_role("button", name="Snooze").click()
    refusal = page.get_by_role("alert").filter(has_text="Not recorded.")
    expect(refusal).to_contain_text("grace.hopper snoozed it until")
    expect(refusal).to_contain_text("My own words.")


def test_what_others_do_shows_by_itself_and_half_written_words_stay(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    page.get_by_label("Comment", exact=True).fill("Half a")
    page.locator("#confirm-reason").fill("It is on")
    grace = factories.person("grace.hopper", groups=["Approver"], teams=[story.refund.team])
    comments.comment(case_id=story.charge.pk, person=grace, channel="api", text="The bank confirmed it.")
    assignments.claim(case_id=story.charge.pk, person=grace, channel="api")
    expect(page.get_by_text("The bank confirmed it.")).to_be_visible()
    expect(page.get_by_text("grace.hopper has it; you may answer all the same")).to_be_visible()
    expect(page.get_by_label("Comment", exact=True)).to_have_value("Half a")
    expect(page.locator("#confirm-reason")).to_have_value("It is on")


@BOTH
def test_the_second_of_two_people_decides(visit: Visit, story: Story, javascript: bool) -> None:
    people = {"confirm": {"needed": 2}, "retry": {}, "abandon": {}}
    put_in_force({"rules": [{"name": "two", "set": {"decisions": {"outcome_unknown": people}}}]})
    grace = factories.person("grace.hopper", groups=["Approver"], teams=[story.refund.team])
    first = visit(story.approver, case_address(story), javascript=javascript)
    first.locator("#confirm-reason").fill("It is on the statement.")
    first.get_by_role("button", name="Confirm").click()
    expect(first.get_by_text("1 of 2")).to_be_visible()
    expect(first.get_by_role("button", name="Confirm")).to_have_count(0)
    expect(first.get_by_role("button", name="Retry")).to_have_count(0)
    assert Signature.objects.get().person_name == "ada"
    second = visit(grace, "/review/?list=second_person", javascript=javascript)
    second.get_by_role("link", name="Did it happen?").click()
    expect(second.get_by_text("It is on the statement.")).to_be_visible()
    for locator in [second.get_by_role("button", name=name) for name in ("Confirm", "Retry", "Abandon")]:
        expect(locator).to_be_in_viewport(ratio=1)
    second.locator("#confirm-reason").fill("So it is.")
    second.get_by_role("button", name="Confirm").click()
    expect(second.get_by_role("heading", name="grace.hopper answered: confirm")).to_be_visible()
    if javascript:
        expect(first.get_by_role("heading", name="grace.hopper answered: confirm")).to_be_visible()


@BOTH
def test_a_workflow_is_wound_down(visit: Visit, story: Story, javascript: bool) -> None:
    page = visit(factories.person("root", groups=["Admin"]), f"/workflows/{story.refund.pk}/", javascript=javascript)
    page.get_by_role("link", name="Wind down").click()
    expect(page.get_by_role("heading", name="Ends without running 3")).to_be_visible()
    expect(page.get_by_text("Somebody still has to answer its question.")).to_be_visible()
    page.get_by_label("Reason").fill("The customer withdrew.")
    page.get_by_role("button", name="Wind it down").click()
    expect(page.get_by_text("winding down").first).to_be_visible()
    expect(page.get_by_text("The customer withdrew.")).to_be_visible()


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, story: Story, scheme: str, screen: dict[str, Any]) -> None:
    people = {"confirm": {"needed": 2}, "retry": {"groups": ["Nobody"]}, "abandon": {}}
    put_in_force({"rules": [{"name": "two", "set": {"decisions": {"outcome_unknown": people}}}]})
    grace = factories.person("grace.hopper", groups=["Approver", "Admin"], teams=[story.refund.team])
    assignments.claim(case_id=story.charge.pk, person=grace, channel="console")
    comments.comment(case_id=story.charge.pk, person=grace, channel="console", text="The bank answers on Monday.")
    page = visit(grace, case_address(story), color_scheme=scheme, bypass_csp=True, **screen)
    page.locator("#confirm-reason").fill("It is on the statement.")
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("1 of 2")).to_be_visible()
    page.goto(case_address(story))
    for closed in page.locator("summary").all():
        closed.click()
    page.get_by_role("button", name="Snooze").click()
    addresses = {"case": None, "refund": f"/workflows/{story.refund.pk}/abandonment/"}
    addresses |= {name: f"/review/?list={name}" for name in ("mine", "second_person", "snoozed", "done")}
    for name, address in addresses.items():
        if address is not None:
            page.goto(address)
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
