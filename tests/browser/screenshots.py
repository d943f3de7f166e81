"""Takes the pictures of the console for docs/: `python -m pytest tests/browser/screenshots.py`, or `make screenshots`.

Not collected by the test run: its name does not begin with test_. The rows are those of `tests.browser.story`.
"""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from checkpoint.config.environment import BASE_DIR
from tests.browser.story import tell

PICTURES = BASE_DIR / "docs"


def test_take_pictures(visit: Callable[..., Page], database: object) -> None:
    """The case page is the picture of the product; the workflow's goes beside it."""
    story = tell()
    page = visit(story.approver, "/review/", color_scheme="light")
    for name, address in {
        "console": f"/cases/{story.charge.pk}/",
        "console-workflow": f"/workflows/{story.refund.pk}/",
    }.items():
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.screenshot(path=PICTURES / f"{name}.png")
