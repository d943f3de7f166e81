"""Speaks the console as a browser without JavaScript would, or, with `htmx=True`, as htmx would."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from checkpoint.models import Case

HTMX = {"HX-Request": "true"}


def signed_in(person: User) -> Client:
    """A browser in which the person is signed in; CSRF is checked as for real."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    return client


class Forms(HTMLParser):
    """The forms of a page with their fields; buttons are kept under "buttons"."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []
        self._textarea = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects."""
        found = {name: value or "" for name, value in attrs}
        if tag == "form" and found.get("method") != "dialog":  # those only close what the browser has opened
            self.forms.append({"action": found.get("action", ""), "fields": {}, "buttons": {}})
        if not self.forms or "name" not in found:
            return
        if tag == "button":
            self.forms[-1]["buttons"][found["name"]] = found["value"]
        elif tag in {"input", "textarea"}:
            self.forms[-1]["fields"][found["name"]] = found.get("value", "")
            self._textarea = found["name"] if tag == "textarea" else ""

    def handle_data(self, data: str) -> None:
        """A text area's value is its content."""
        if self._textarea:
            self.forms[-1]["fields"][self._textarea] += data

    def handle_endtag(self, tag: str) -> None:
        """Ends a text area."""
        if tag == "textarea":
            self._textarea = ""


def answers(page: Any) -> dict[str, dict[str, Any]]:
    """The answers that a case page offers, by kind."""
    return {form["buttons"]["kind"]: form for form in Forms(page.text).forms if "kind" in form["buttons"]}


def answer(
    client: Client,
    case: Case,
    kind: str,
    *,
    reason: str = "I looked.",
    htmx: bool = False,
    fields: Mapping[str, object] | None = None,
) -> Any:
    """Opens the case, fills in one answer's form and presses its button; `fields` overwrite what the form holds."""
    form = answers(client.get(f"/cases/{case.pk}/"))[kind]
    sent = {**form["fields"], **form["buttons"], "reason": reason, **(fields or {})}
    return client.post(form["action"], sent, headers=HTMX if htmx else None)
