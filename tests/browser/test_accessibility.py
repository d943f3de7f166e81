"""Each page in light and dark, on a laptop and a phone: axe finds nothing, nothing scrolls sideways; signing in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from checkpoint.config.environment import BASE_DIR
from tests import factories
from tests.browser.story import Story

pytestmark = pytest.mark.browser
AXE = BASE_DIR / "tests" / "vendor" / "axe-core-4.14.1" / "axe.min.js"
PHONE = {"viewport": {"width": 390, "height": 844}}
Visit = Callable[..., Page]


def violations(page: Page) -> list[Any]:
    """What axe finds, each with the elements concerned."""
    page.add_script_tag(path=AXE)
    found: list[Any] = page.evaluate(
        "async () => (await axe.run()).violations.map(found => [found.id, ...found.nodes.map(node => node.html)])"
    )
    return found


def pages(story: Story) -> dict[str, str]:
    """Every kind of page, by name."""
    return {
        "review": "/review/",
        "case": f"/cases/{story.charge.pk}/",
        "decided": f"/cases/{story.charge.pk}/",
        "workflows": "/workflows/",
        "nothing": "/workflows/?search=nothing+like+it",
        "workflow": f"/workflows/{story.refund.pk}/",
        "evidence": f"/evidence/{story.refund.steps.get(name='open_ticket').receipt_id}/",
        "times": f"/workflows/{story.refund.pk}/times/",
        "overview": "/overview/",
        "tools": "/tools/",
        "tool": "/tools/card.charge/",
        "searched": "/review/?search=order&tool=card.charge",
        "no match": "/review/?list=done&search=nothing",
        "refusal": "/nowhere/",
    }


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, story: Story, scheme: str, screen: dict[str, Any]) -> None:
    page = visit(story.approver, "/review/", color_scheme=scheme, bypass_csp=True, **screen)
    for name, address in pages(story).items():
        page.goto(address)
        if name == "decided":
            page.locator("#confirm-reason").fill("It is on the statement.")
            page.get_by_role("button", name="Confirm").click()
            expect(page.get_by_role("heading", name="ada answered: confirm")).to_be_visible()
        for closed in page.locator("summary").all():
            closed.click()
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
def test_axe_finds_nothing_on_the_page_of_tokens(visit: Visit, story: Story, screen: dict[str, Any]) -> None:
    admin = factories.person("adam", groups=["Admin"])
    page = visit(admin, "/tokens/", color_scheme="dark", bypass_csp=True, **screen)
    page.get_by_text("Issue a token").click()
    page.get_by_label("Account").fill("adam")
    page.get_by_label("What will use it").fill("a script")
    page.get_by_label("Reason").fill("To try it.")
    page.get_by_role("button", name="Issue").click()
    expect(page.get_by_text("This is shown only now.")).to_be_visible()
    for closed in page.locator("summary").all():
        closed.click()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
def test_signing_in_leads_to_where_one_wanted_to_go(
    browser: Browser, web_server: str, story: Story, javascript: bool
) -> None:
    page = browser.new_page(java_script_enabled=javascript, bypass_csp=True)
    page.goto(f"{web_server}{f'/cases/{story.charge.pk}/'}")
    if javascript:
        assert violations(page) == []
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").get_by_text("do not match")).to_be_visible()
    page.get_by_label("Password").fill(factories.PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Did it happen?")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.context.close()
