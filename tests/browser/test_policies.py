"""Policies in Chromium: put in force with and without JavaScript; axe finds nothing, nothing scrolls sideways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from approvals.rules.policy_versions import activate, in_force
from checkpoint.people import Actor
from tests import factories, submissions
from tests.browser.test_accessibility import PHONE, violations
from tests.policies_driver import CAREFUL

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]
Visit = Callable[..., Page]


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
def test_an_administrator_puts_a_policy_in_force(visit: Visit, javascript: bool) -> None:
    submissions.submitted(submissions.mail())
    page = visit(factories.person("ada", groups=["Admin"]), "/policies/", javascript=javascript)
    page.get_by_role("link", name="Put a policy in force").click()
    page.get_by_label("The policy, as YAML").fill("rules:\n- name: a\n  set: {approval: {needed: 0}}\n")
    page.get_by_role("button", name="See what it changes").click()
    expect(page.get_by_role("alert").get_by_text("must be at least 1, not the number 0")).to_be_visible()
    page.get_by_label("Or a file").set_input_files(
        {"name": "careful.yaml", "mimeType": "text/yaml", "buffer": CAREFUL.encode()}
    )
    page.get_by_role("button", name="See what it changes").click()
    expect(page.get_by_text("1 in 1 workflow", exact=False).first).to_be_visible()
    page.get_by_label("Reason").fill("Approvals for what cannot be undone.")
    page.get_by_role("button", name="Put version 2 in force").click()
    expect(page.get_by_role("heading", name="Policy version 2")).to_be_visible()
    assert (in_force().text, in_force().author) == (CAREFUL, "ada")


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, scheme: str, screen: dict[str, Any]) -> None:
    submissions.submitted(submissions.mail())
    activate(text=CAREFUL, actor=Actor("root", "command"), user=None, reason="Approvals.", seen=1)
    page = visit(
        factories.person("ada", groups=["Admin"]), "/policies/", color_scheme=scheme, bypass_csp=True, **screen
    )
    for address in ("/policies/", "/policies/2/", "/policies/difference/?old=1&new=2", "/policies/activation/"):
        page.goto(address)
        _check(page, address)
    page.get_by_label("The policy, as YAML").fill("rules: [1]")
    page.get_by_role("button", name="See what it changes").click()
    _check(page, "faults")
    page.get_by_label("The policy, as YAML").fill(CAREFUL.replace("needed: 1\n", "needed: 3\n"))
    page.get_by_role("button", name="See what it changes").click()
    expect(page.get_by_role("heading", name="Put it in force")).to_be_visible()
    _check(page, "preview")


def _check(page: Page, what: str) -> None:
    assert violations(page) == [], what
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{what} scrolls sideways"
