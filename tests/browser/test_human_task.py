"""A task for a person, in Chromium: the form can be filled in with and without JavaScript, and axe finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.models import Case, Step
from checkpoint.states import CaseReason
from tests import factories
from tests.browser.story import Story
from tests.browser.test_accessibility import PHONE, violations

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]

TASK = Contract(RecoveryClass.READ_ONLY, Reversibility.NONE_NEEDED, asks=True)
FORM = {
    "properties": {
        "account": {"type": "string", "maxLength": 30, "title": "Cost centre", "description": "Four digits"},
        "cents": {"type": "integer", "minimum": 1},
        "due": {"type": "string", "format": "date"},
        "note": {"type": "string", "maxLength": 2000},
        "taxed": {"type": "boolean"},
        "tier": {"type": "string", "enum": ["gold", "silver"]},
    },
    "required": ["account", "cents"],
}


@pytest.fixture
def task(story: Story) -> Case:
    """A question that is open."""
    tool = factories.tool("human.task", TASK)
    arguments = {"title": "Which cost centre?", "instructions": "", "form": FORM}
    workflow = factories.workflow(goal="Book the order.")
    step = factories.step(workflow, name="cost_centre", tool_version=tool, arguments=arguments)
    findings = {"known": [], "unknown": ["The answer."], "tried": [], "said": "Which cost centre?"}
    return factories.case(step, CaseReason.HUMAN_TASK, sentence="“cost_centre” asks a person.", findings=findings)


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
def test_axe_finds_nothing_on_a_task(visit: Visit, story: Story, task: Case, screen: dict[str, Any]) -> None:
    page = visit(story.approver, f"/cases/{task.pk}/", bypass_csp=True, **screen)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
def test_a_person_fills_in_the_form(visit: Visit, story: Story, task: Case, javascript: bool) -> None:
    page = visit(story.approver, f"/cases/{task.pk}/", javascript=javascript)
    page.get_by_label("Cost centre").fill("4711")
    page.get_by_label("cents").fill("1200")
    page.get_by_label("taxed").select_option("yes")
    page.get_by_label("due").fill("2026-12-24")
    page.locator("#answer-reason").fill("asked the books")
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_role("heading", name="ada answered: answer")).to_be_visible()
    receipt = Step.objects.get(pk=task.step_id).receipt
    assert receipt is not None
    assert receipt.facts_value["answer"] == {"account": "4711", "cents": 1200, "due": "2026-12-24", "taxed": True}
