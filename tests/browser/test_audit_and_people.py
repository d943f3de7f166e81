"""The audit and people in Chromium: with and without JavaScript; axe finds nothing, nothing scrolls sideways."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from checkpoint.identity import accounts
from checkpoint.models import Workflow
from checkpoint.people import Actor
from checkpoint.trail import audit_anchors
from tests import factories
from tests.browser.test_accessibility import PHONE, violations

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("database")]
Visit = Callable[..., Page]
PICTURES = os.environ.get("CHECKPOINT_PICTURES")


@pytest.fixture
def admin() -> User:
    """Somebody who sees both, in an installation where something has happened."""
    case = factories.case()
    factories.audited(case.workflow, "decide", f"case {case.pk}", reason="Found in the ledger.", after="confirm")
    factories.audited(case.workflow, "commit", "step charge_card", actor=Actor("engine", "engine"), after="committed")
    factories.audited(case.workflow, "deny", "=HYPERLINK(1)\u202e", actor=Actor("eve", "api"), reason="x" * 400)
    factories.person("ada", groups=["Operator"], teams=[case.workflow.team])
    audit_anchors.anchor()
    return factories.person("grace", groups=["Admin"])


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
def test_an_administrator_changes_what_somebody_may_reach(visit: Visit, admin: User, javascript: bool) -> None:
    page = visit(admin, "/people/", javascript=javascript)
    page.get_by_role("link", name="ada").click()
    page.get_by_label("Operator").uncheck()
    page.get_by_label("Auditor").check()
    page.get_by_role("textbox", name="Reason").fill("She audits from now on.")
    page.get_by_role("button", name="Change access").click()
    expect(page.get_by_label("Auditor")).to_be_checked()
    expect(page.get_by_role("textbox", name="Reason")).to_have_value("")
    assert accounts.access_of(User.objects.get(username="ada")).groups == {"Auditor"}
    page.get_by_role("link", name="What was done to this account").click()
    expect(page.get_by_text("She audits from now on.").first).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
def test_an_auditor_searches_reads_an_entry_and_exports(
    visit: Visit, admin: User, javascript: bool, tmp_path: Path
) -> None:
    page = visit(admin, "/audit/", javascript=javascript)
    page.get_by_label("Who").select_option("people")
    page.get_by_label("Words").fill("ledger")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON Lines").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["record"] for line in lines]
    assert (kinds[0], kinds.count("entry"), kinds.count("left_out"), kinds[-1]) == ("export", 1, 2, "end")
    page.locator("tbody a").click()
    expect(page.get_by_role("heading", name="The exact text")).to_be_visible()
    page.get_by_role("link", name="no. 2").click()
    expect(page.get_by_role("heading", name="commit step charge_card")).to_be_visible()


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, admin: User, scheme: str, screen: dict[str, Any]) -> None:
    page = visit(admin, "/audit/", color_scheme=scheme, bypass_csp=True, **screen)
    ada = User.objects.get(username="ada")
    entry = f"/audit/{Workflow.objects.get().pk}/3/"
    addresses = {
        "audit": "/audit/",
        "nothing": "/audit/?actor=nobody",
        "fault": "/audit/?since=yesterday",
        "entry": entry,
        "people": "/people/",
        "person": f"/people/{ada.pk}/",
        "oneself": f"/people/{admin.pk}/",
    }
    for name, address in addresses.items():
        page.goto(address)
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/{name}-{scheme}-{'phone' if screen else 'laptop'}.png")
