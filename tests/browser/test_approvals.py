"""Requests for approval in Chromium: from the queue to the answer, with and without JavaScript, for two people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from approvals.models import Decision
from checkpoint import clock
from checkpoint.models import Approval, ToolVersion, Workflow
from checkpoint.states import StepStatus
from tests import factories
from tests.approval_driver import answer, in_force, pending
from tests.browser.test_accessibility import violations
from tests.journal_driver import JournalDriver

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}}
Visit = Callable[..., Page]


@dataclass(frozen=True)
class Asked:
    """A refund of which the charge waits for two people, and a publication whose whole plan waits."""

    ada: User
    grace: User
    charge: Approval
    plan: Approval


@pytest.fixture
def asked(database: object) -> Asked:
    """The engine asks, under a policy that a person could have written."""
    in_force(
        {
            "name": "what cannot be undone needs two people",
            "when": {"reversibility": "irreversible"},
            "set": {"approval": {"needed": 2, "expires_seconds": 14400}},
        },
        {
            "name": "publications are allowed as a whole",
            "when": {"kind": "publishing"},
            "set": {"approval": {"scope": "plan", "needed": 1}},
        },
    )
    billing = factories.team("Billing")
    refund, publication = _refund(), _publication()
    Workflow.objects.filter(pk__in=[refund.pk, publication.pk]).update(wake_at=clock.now())
    JournalDriver(*(str(tool) for tool in ToolVersion.objects.all())).turn()
    ada, grace = (factories.person(name, groups=["Approver"], teams=[billing]) for name in ("ada", "grace"))
    return Asked(ada, grace, charge=pending(refund), plan=pending(publication))


def _refund() -> Workflow:
    refund = factories.workflow(
        goal="Refund order 1007 to the customer and tell her. The parcel arrived broken; she sent photographs.",
        constraints=["Never refund more than the order's total of 129.00 EUR."],
    )
    ticket = factories.tool("ticket.open", factories.TICKET)
    factories.step(refund, StepStatus.VERIFIED, name="open_ticket", tool_version=ticket, arguments={"order": 1007})
    arguments = {"amount_cents": 12900, "card": "tok_91", "currency": "EUR", "memo": "Refund for order 1007"}
    factories.step(refund, name="charge_card", arguments=arguments)
    note = factories.tool("crm.note", factories.NOTE)
    factories.step(refund, StepStatus.PLANNED, name="note_in_crm", tool_version=note)
    return refund


def _publication() -> Workflow:
    publication = factories.workflow(kind="publishing", goal="Publish the price list for December.")
    write = factories.tool("file.write", factories.TICKET)
    for number, path in enumerate(("prices/december.html", "prices/index.html"), 1):
        arguments = {"path": path, "text": "<h1>Prices for December</h1>"}
        factories.step(publication, name=f"write_page_{number}", tool_version=write, arguments=arguments)
    return publication


def give(page: Page, button: str, reason: str) -> None:
    """Fills in the form of one answer and presses its button."""
    form = page.locator("form").filter(has=page.get_by_role("button", name=button, exact=True))
    form.get_by_label("Reason").fill(reason)
    form.get_by_role("button", name=button, exact=True).click()


@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "without"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
def test_from_the_queue_to_an_approval_by_two_people(
    visit: Visit, asked: Asked, javascript: bool, screen: dict[str, Any]
) -> None:
    for person, given in ((asked.ada, "1 of 2"), (asked.grace, "")):
        page = visit(person, "/review/", javascript=javascript, **screen)
        page.get_by_role("row").filter(has_text="charge_card").get_by_role("link", name="May this run?").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("May this run?")
        give(page, "Approve", "The order and the amount match.")
        if given:
            expect(page.get_by_text(given).first).to_be_visible()
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    expect(page.get_by_role("heading", name="It may run", exact=True)).to_be_visible()
    page.get_by_role("link", name="Back to review").click()
    expect(page.get_by_role("link", name="May this run?")).to_have_count(0)
    assert Decision.objects.count() == 2


def test_a_request_is_read_and_answered_on_one_laptop_screen(visit: Visit, asked: Asked) -> None:
    page = visit(asked.ada, f"/approvals/{asked.charge.pk}/")
    headings = ("May this run?", "Why it is asked", "Who has answered", "Where it stands in the plan")
    seen = [page.get_by_role("heading", name=name) for name in headings]
    seen += [page.get_by_role("button", name=name) for name in ("Approve", "Reject")]
    seen += [page.get_by_role("heading", name="Arguments"), page.get_by_text("tok_91")]
    for locator in seen:
        expect(locator.first).to_be_in_viewport(ratio=1)


def test_what_somebody_else_answers_shows_by_itself_and_leaves_alone_what_is_typed(visit: Visit, asked: Asked) -> None:
    page = visit(asked.ada, f"/approvals/{asked.charge.pk}/")
    page.locator("#approve-reason").fill("The order and")
    answer(asked.charge, asked.grace, reason="The amount is right.")
    expect(page.get_by_text("The amount is right.")).to_be_visible()
    expect(page.locator("#approve-reason")).to_be_focused()
    page.keyboard.type(" the amount match.")
    expect(page.locator("#approve-reason")).to_have_value("The order and the amount match.")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="It may run", exact=True)).to_be_focused()


def test_an_answer_without_a_reason_does_not_leave_the_page(visit: Visit, asked: Asked) -> None:
    page = visit(asked.ada, f"/approvals/{asked.plan.pk}/")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#reject-reason:invalid")).to_be_focused()
    assert not Decision.objects.exists()


@pytest.mark.parametrize("screen", [{}, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visit, asked: Asked, scheme: str, screen: dict[str, Any]) -> None:
    page = visit(asked.ada, "/review/", color_scheme=scheme, bypass_csp=True, **screen)
    for name in ("queue", "step", "plan", "answered", "workflow"):
        if name == "answered":
            answer(asked.charge, asked.ada)
            answer(asked.charge, asked.grace)
        address = {"queue": "/review/", "plan": f"/approvals/{asked.plan.pk}/"}.get(name)
        workflow = f"/workflows/{asked.charge.workflow_id}/"
        page.goto(address or (workflow if name == "workflow" else f"/approvals/{asked.charge.pk}/"))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
