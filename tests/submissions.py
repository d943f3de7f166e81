"""Submitting in tests, through the product's own verbs: tools are published, documents read, plans stored."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.models import User

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.models import Team, Workflow
from checkpoint.people import Actor
from checkpoint.planning.documents import Document, Format, read_document
from checkpoint.planning.plan_steps import PublishedTool
from checkpoint.planning.plans import Plan, parse_plan
from checkpoint.tool_versions import Declaration, newest_tools, publish_tools
from checkpoint.workflows import submit

ACTOR = Actor(name="tests", channel="command")
KEYED = Contract(recovery=RecoveryClass.IDEMPOTENT, reversibility=Reversibility.COMPENSABLE)
OPAQUE = Contract(recovery=RecoveryClass.OPAQUE, reversibility=Reversibility.IRREVERSIBLE)

INVOICE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "minLength": 1},
        "cents": {"type": "integer", "minimum": 1},
        "urgent": {"type": "boolean", "default": False},
    },
    "required": ["customer", "cents"],
    "additionalProperties": False,
}
MAIL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "text": {"type": "string", "default": ""}, "key": {"type": "string"}},
    "required": ["to"],
    "additionalProperties": False,
}
INVOICE = Declaration("invoice.create", "1", "Creates an invoice.", INVOICE_SCHEMA, (Variant("keyed", KEYED),))
MAIL = Declaration(
    "mail.send",
    "1",
    "Sends a mail.",
    MAIL_SCHEMA,
    (Variant("keyed", KEYED, when={"required": ["key"]}), Variant("plain", OPAQUE)),
)


def published(*declarations: Declaration) -> dict[str, PublishedTool]:
    """The tools as a plan is held against them; by default the invoice and the mail."""
    publish_tools(declarations or (INVOICE, MAIL), actor=ACTOR)
    return newest_tools()


def document(*steps: dict[str, Any], **members: Any) -> dict[str, Any]:
    """A submission that is right as it stands: one invoice, unless steps are given."""
    return {"goal": "Invoice acme for November.", "steps": list(steps) or [invoice()], **members}


def invoice(name: str = "invoice", **changes: Any) -> dict[str, Any]:
    """A step that creates an invoice; `changes` replace members of the step."""
    return {"name": name, "tool": "invoice.create", "arguments": {"customer": "acme", "cents": 12000}, **changes}


def mail(name: str = "mail", to: Any = "acme@example.com", **changes: Any) -> dict[str, Any]:
    """A step that sends a mail."""
    return {"name": name, "tool": "mail.send", "arguments": {"to": to}, **changes}


def plan_of(value: dict[str, Any], tools: dict[str, PublishedTool]) -> Plan:
    """The plan in a document that is already parsed."""
    return parse_plan(Document.of(value), tools)


def read_plan(text: str | bytes, format: Format, tools: dict[str, PublishedTool]) -> Plan:
    """The plan in a file's bytes."""
    return parse_plan(read_document(text if isinstance(text, bytes) else text.encode(), format), tools)


def submitted(*steps: dict[str, Any], **members: Any) -> Workflow:
    """A stored workflow of the default team."""
    return submit_plan(read_plan(json.dumps(document(*steps, **members)), "json", published()))


def submit_plan(plan: Plan, user: User | None = None) -> Workflow:
    """The plan stored for the default team, in the name of the account if one is given."""
    actor = Actor(user.get_username(), "command") if user else ACTOR
    return submit(plan, team=Team.objects.get(slug="default"), actor=actor, user=user)
