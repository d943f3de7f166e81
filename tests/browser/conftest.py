"""Debian's Chromium, and the console as a person opens it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser import chromium
from tests.browser.story import Story, tell
from tests.sandbox_driver import wait_for
from tests.web_driver import nobody_follows


@pytest.fixture(scope="session", autouse=True)
def _orm_beside_playwright() -> Iterator[None]:
    """Playwright's loop runs in the thread that also prepares rows; Django would refuse to."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    yield
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Debian's Chromium; without it the tests are skipped, but never in CI."""
    found = next(filter(None, map(shutil.which, chromium.NAMES)), None)
    if found is None:
        message = "Chromium is not installed: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return {"executable_path": found, "args": chromium.FLAGS}


@pytest.fixture
def story(database: object) -> Story:
    """The rows of `tests.browser.story`."""
    return tell()


@pytest.fixture
def visit(browser: Browser, web_server: str, database: object) -> Iterator[Callable[..., Page]]:
    """Opens the console as a person: `visit(user, "/review/", javascript=False)`."""
    contexts: list[BrowserContext] = []

    def open_page(person: User, path: str = "/", *, javascript: bool = True, **options: Any) -> Page:
        size = {"width": 1366, "height": 768}
        context = browser.new_context(
            **{"base_url": web_server, "java_script_enabled": javascript, "viewport": size, **options}
        )
        context.set_default_timeout(10_000)
        contexts.append(context)
        client = Client()
        client.force_login(person)
        context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": web_server}])
        page = context.new_page()
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    wait_for(nobody_follows, 60)
