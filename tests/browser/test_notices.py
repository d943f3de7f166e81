"""The pages of notices in a browser: axe finds nothing, nothing scrolls sideways, settings can be typed and kept."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from approvals.models import Delivery, Notice, NoticeChannel
from checkpoint import clock
from tests import factories
from tests.browser.story import Story
from tests.browser.test_accessibility import PHONE, Visit, violations

pytestmark = pytest.mark.browser


def told(story: Story) -> Notice:
    """A notice that failed, one that arrived, and a channel."""
    now, case = clock.now(), story.charge
    common: dict[str, Any] = {"workflow": case.workflow, "case": case, "created_at": now, "due_at": now}
    notices = [
        Notice.objects.create(
            kind=kind, person=story.approver, recipient=f"person/{story.approver.pk}", state=state, settled_at=now,
            attempt_count=1, attempts_allowed=48, detail=detail, **common,
        )
        for kind, state, detail in (("asked", "delivered", ""), ("reminder", "failed", "550 <b>no</b> such user"))
    ]  # fmt: skip
    Delivery.objects.create(
        notice=notices[1], number=1, started_at=now, ended_at=now, delivered=False, detail="550 <b>no</b> such user"
    )
    NoticeChannel.objects.create(name="chat", format="slack", url="https://hooks.example/T0", kinds=["asked"])
    return notices[1]


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, story: Story, scheme: str, screen: dict[str, Any]) -> None:
    notice = told(story)
    boss = factories.person("boss", groups=["Admin"])
    page = visit(boss, "/review/", color_scheme=scheme, bypass_csp=True, **screen)
    for address in ("/notices/", f"/notices/{notice.pk}/", "/notices/settings/", "/notices/channels/"):
        page.goto(address)
        assert violations(page) == [], address
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{address} scrolls sideways"


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
def test_what_is_wrong_is_said_beside_the_field_and_what_was_typed_stays(
    visit: Visit, story: Story, javascript: bool
) -> None:
    page = visit(story.approver, "/notices/settings/", javascript=javascript)
    page.get_by_label("E-mail address").fill("ada@work.example")
    page.get_by_label("in", exact=True).fill("Berlin")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("is no time zone")).to_be_visible()
    expect(page.get_by_label("E-mail address")).to_have_value("ada@work.example")
    page.get_by_label("in", exact=True).fill("Europe/Berlin")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
