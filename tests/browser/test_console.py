"""The console in Chromium: the whole way from the queue to a decision, with and without JavaScript, for everybody."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from approvals.decisions import decide
from approvals.models import Decision
from checkpoint.models import Step
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import StepStatus
from tests import factories
from tests.browser.story import Story

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}}
Visit = Callable[..., Page]


def case_address(story: Story) -> str:
    return f"/cases/{story.charge.pk}/"


def give(page: Page, button: str, reason: str) -> None:
    """Fills in the form of one answer and presses its button."""
    form = page.locator("form").filter(has=page.get_by_role("button", name=button))
    form.get_by_label("Reason").fill(reason)
    form.get_by_role("button", name=button).click()


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
def test_from_the_queue_to_a_decision(visit: Visit, story: Story, javascript: bool, screen: dict[str, Any]) -> None:
    page = visit(story.approver, "/review/", javascript=javascript, **screen)
    page.get_by_role("link", name="Did it happen?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Did it happen?")
    give(page, "Confirm", "It is on the statement.")
    expect(page.get_by_role("heading", name="ada answered: confirm")).to_be_visible()
    expect(page.get_by_text("It took effect; its outcome is being read back.")).to_be_visible()
    expect(page.get_by_role("button", name="Confirm")).to_have_count(0)
    page.get_by_role("link", name="Back to review").click()
    expect(page.get_by_role("link", name="Did it happen?")).to_have_count(0)
    assert Decision.objects.get().reason == "It is on the statement."


def test_after_an_answer_the_page_follows_the_step_until_it_is_verified(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    give(page, "Confirm", "It is on the statement.")
    expect(page.get_by_text("being read back")).to_be_visible()
    factories.move(Step.objects.get(pk=story.charge.step_id), StepStatus.VERIFIED)
    expect(page.get_by_text("The step is verified.")).to_be_visible()


def test_a_question_is_read_and_answered_on_one_laptop_screen(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    seen = [page.get_by_role("heading", name=name) for name in ("Did it happen?", "Known", "Not known", "Tried")]
    seen += [page.get_by_role("button", name=name) for name in ("Confirm", "Retry", "Abandon")]
    seen += [page.get_by_role("heading", name=name) for name in ("Where to look", "Arguments")]
    for locator in seen:
        expect(locator.first).to_be_in_viewport(ratio=1)


def test_what_somebody_else_decides_shows_by_itself(visit: Visit, story: Story) -> None:
    page, queue = visit(story.approver, case_address(story)), visit(story.auditor, "/review/")
    expect(queue.get_by_role("link", name="Did it happen?")).to_be_visible()
    expect(queue.get_by_role("navigation").get_by_text("2 open")).to_be_visible()
    give_elsewhere(story)
    expect(page.get_by_role("heading", name="grace2 answered: retry")).to_be_visible()
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    expect(queue.locator(f"#case-{story.charge.pk}")).to_contain_text("grace2 answered retry")
    expect(queue.get_by_role("navigation").get_by_text("1 open")).to_be_visible()


def give_elsewhere(story: Story) -> None:
    """Another approver answers over another channel."""
    other = factories.person("grace2", groups=["Approver"], teams=[story.refund.team])
    step = Step.objects.get(pk=story.charge.step_id)
    decide(
        case_id=story.charge.pk,
        kind=DecisionKind.RETRY,
        person=other,
        channel="api",
        reason="Nothing at the bank.",
        step_version=step.version,
        arguments_hash=step.arguments_hash,
    )


def test_polls_leave_alone_what_is_being_typed(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    reason = page.locator("#retry-reason")
    reason.fill("Nothing at the ba")
    with page.expect_response(lambda answered: answered.url.endswith(case_address(story))) as polled:
        pass
    assert polled.value.status == 204
    factories.evidence(Step.objects.get(pk=story.charge.step_id), finding="found", source="bank")
    expect(page.get_by_role("cell", name="bank")).to_be_visible()
    expect(reason).to_be_focused()
    page.keyboard.type("nk.")
    expect(reason).to_have_value("Nothing at the bank.")


def test_a_refusal_stands_beside_what_was_typed(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    page.locator("#confirm-operation").fill("ch_77")
    give(page, "Confirm", "   ")
    expect(page.get_by_text("Say in a sentence why")).to_be_visible()
    expect(page.locator("#confirm-operation")).to_have_value("ch_77")
    expect(page.locator("#confirm-reason")).to_be_focused()
    give(page, "Confirm", "It is on the statement.")
    expect(page.get_by_role("heading", name="ada answered: confirm")).to_be_visible()


def test_an_answer_without_a_reason_does_not_leave_the_page(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    page.get_by_role("button", name="Abandon").click()
    expect(page.locator("#abandon-reason:invalid")).to_be_focused()
    assert not Decision.objects.exists()


def test_a_lost_connection_shows_and_goes_away_again(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    page.route("**/cases/**", lambda route: route.abort())
    give(page, "Retry", "Nothing at the bank.")
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    expect(page.locator("#retry-reason")).to_have_value("Nothing at the bank.")
    page.unroute("**/cases/**")
    expect(page.get_by_text("The server cannot be reached.")).to_be_hidden()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("heading", name="ada answered: retry")).to_be_visible()


def test_a_broken_server_shows_and_the_typed_text_stays(visit: Visit, story: Story) -> None:
    page = visit(story.approver, case_address(story))
    page.context.clear_cookies(name="sessionid")
    give(page, "Retry", "Nothing at the bank.")
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.locator("#retry-reason")).to_have_value("Nothing at the bank.")
    assert not Decision.objects.exists()


def test_the_queue_is_worked_by_keyboard_alone(visit: Visit, story: Story) -> None:
    page = visit(story.approver, "/review/")
    first, second = page.locator("[data-row]").all()
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    with page.expect_response(lambda answered: "/review/" in answered.url):
        pass
    expect(second).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"{case_address(story)}$"))
    page.locator("#retry-reason").focus()
    page.keyboard.type("jkjk")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="ada answered: retry")).to_be_focused()


def test_details_that_are_open_stay_open_while_the_page_renews_itself(visit: Visit, story: Story) -> None:
    page = visit(story.approver, f"/workflows/{story.refund.pk}/")
    page.locator("summary", has_text="open_ticket").click()
    key = page.locator("details[open] dt", has_text="Key")
    expect(key).to_be_visible()
    factories.audited(story.refund, "note", "something new")
    expect(page.get_by_text("something new")).to_be_visible()
    expect(key).to_be_visible()


def test_hostile_text_does_not_act(visit: Visit, story: Story) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202e drawkcab"
    workflow = factories.workflow(goal=hostile, kind=hostile[:60])
    step = factories.step(workflow, StepStatus.UNCERTAIN, name=hostile[:100], arguments={hostile: hostile})
    case = factories.case(step, sentence=hostile)
    page = visit(story.approver, f"/cases/{case.pk}/")
    said: list[str] = []
    page.on("dialog", lambda dialog: said.append(dialog.message))
    for address in (f"/cases/{case.pk}/", f"/workflows/{workflow.pk}/", "/review/", "/workflows/"):
        page.goto(address)
        expect(page.get_by_text("U+202E").first).to_be_attached()
        expect(page).not_to_have_title("owned")
    assert not said


def test_nothing_is_asked_of_another_host(visit: Visit, story: Story) -> None:
    hosts: set[str] = set()
    page = visit(story.approver, "/review/")

    def note(route: Route) -> None:
        hosts.add(route.request.url.split("/")[2])
        route.continue_()

    page.route("**", note)
    for address in ("/workflows/", f"/workflows/{story.refund.pk}/", case_address(story)):
        page.goto(address)
    assert len(hosts) == 1
