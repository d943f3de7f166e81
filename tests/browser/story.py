"""A believable installation for pictures and browser tests: a refund that stopped, and workflows around it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from checkpoint.models import Case, Workflow
from checkpoint.states import CaseReason, StepStatus, WorkflowStatus
from tests import factories


@dataclass(frozen=True)
class Story:
    """The people and rows that tests and pictures name."""

    approver: User
    auditor: User
    stranger: User
    refund: Workflow
    charge: Case


def tell() -> Story:
    """Inserts everything."""
    billing = factories.team("Billing")
    refund, charge = _refund()
    _invoices()
    _publication()
    return Story(
        approver=factories.person("ada", groups=["Approver"], teams=[billing]),
        auditor=factories.person("grace", groups=["Auditor"]),
        stranger=factories.person("eve", groups=["Approver"], teams=[factories.team("Legal")]),
        refund=refund,
        charge=charge,
    )


def _refund() -> tuple[Workflow, Case]:
    refund = factories.workflow(
        goal="Refund order 1007 to the customer and tell her. The parcel arrived broken; she sent photographs.",
        constraints=["Never refund more than the order's total of 129.00 EUR.", "Write to the customer only once."],
    )
    ticket = factories.tool("ticket.open", factories.TICKET)
    note = factories.tool("crm.note", factories.NOTE)
    factories.step(refund, StepStatus.VERIFIED, name="open_ticket", tool_version=ticket, arguments={"order": 1007})
    arguments = {
        "amount_cents": 12900,
        "card": "tok_91",
        "currency": "EUR",
        "memo": "Refund for order 1007, parcel arrived broken",
        "metadata": {"order": 1007, "ticket": "T-5512"},
    }
    charge = factories.step(refund, StepStatus.UNCERTAIN, name="charge_card", arguments=arguments)
    for name in ("note_in_crm", "mail_customer"):
        factories.step(refund, StepStatus.PLANNED, name=name, tool_version=note, position=3)
    factories.step(refund, StepStatus.PLANNED, name="close_ticket", tool_version=ticket, position=4)
    case = factories.case(
        charge,
        sentence="“charge_card” was started with card.charge@1, and whether it took effect is not known:"
        " the provider can neither be asked nor told to ignore a repetition.",
        findings={
            "known": ["Attempt 1 started at 2026-12-01 09:44:12 UTC and ended without a recorded answer."],
            "unknown": ["Whether the effect took place."],
            "tried": ["1 execution with the same key.", "No lookup: the tool has none for this effect."],
            "said": "connection reset by peer after 2.1 s",
        },
    )
    factories.audited(refund, "submit", "workflow", after="planned")
    factories.audited(refund, "start", "step charge_card", before="prepared", after="started")
    factories.audited(
        refund, "question", "step charge_card", before="started", after="uncertain", reason="outcome unknown"
    )
    return refund, case


def _invoices() -> None:
    for number in range(1, 4):
        month = factories.workflow(kind="invoicing", goal=f"Send the invoices of November to customer group {number}.")
        for status in (StepStatus.VERIFIED, StepStatus.VERIFIED, StepStatus.COMMITTED)[:number]:
            factories.step(month, status, tool_version=factories.tool("http.request", factories.TICKET))
        for target in (WorkflowStatus.EXECUTING, WorkflowStatus.VERIFYING)[: 2 if number == 3 else 1]:
            Workflow.objects.filter(pk=month.pk).update(status=target)


def _publication() -> None:
    site = factories.workflow(kind="publishing", goal="Publish the price list for December.")
    page = factories.tool("file.write", factories.TICKET)
    hidden = factories.step(site, StepStatus.COMMITTED, name="write_prices", tool_version=page)
    factories.move(hidden, StepStatus.UNCERTAIN)
    factories.case(
        hidden,
        CaseReason.EFFECT_NOT_VISIBLE,
        sentence="file.write@1 reported “write_prices” as done, but its outcome did not become visible in time.",
    )
