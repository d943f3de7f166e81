"""One step of every recovery class, as an agent submits it, against the sandbox; and how its effect is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checkpoint.models import Step
from tests.sandbox_driver import SandboxProcess


@dataclass(frozen=True)
class EffectKind:
    """A kind of effect.

    Attributes:
        name: also the step's name.
        ledger_kind: what the provider's ledger calls it.
        path: the provider's path, for its switch.
    """

    name: str
    ledger_kind: str
    path: str

    def step(self, sandbox: SandboxProcess) -> dict[str, Any]:
        """The step as it is submitted."""
        return {"name": self.name, "tool": "http.request", "arguments": _ARGUMENTS[self.name](sandbox.url)}

    def count(self, sandbox: SandboxProcess, step: Step) -> int:
        """How often the effect is in the provider's ledger."""
        return sandbox.count(self.ledger_kind, key=step.idempotency_key)


def _keyed(url: str) -> dict[str, Any]:
    return {"method": "POST", "url": f"{url}/billing/invoices", "json": {"customer": "acme", "amount": 120}}


def _keyed_looked_up(url: str) -> dict[str, Any]:
    lookup = {
        "url": f"{url}/billing/invoices?key={{key}}",
        "found": [{"pointer": "/count", "equals": 1}],
        "absent": [{"pointer": "/count", "equals": 0}, {"pointer": "/in_progress", "equals": False}],
        "pending": [{"pointer": "/count", "equals": 0}, {"pointer": "/in_progress", "equals": True}],
        "operation_id": "/invoices/0/number",
        "keep": {"number": "/invoices/0/number"},
        "compare": {"/amount": "/invoices/0/amount"},
    }
    verify = {
        "url": f"{url}/billing/invoices/{{operation_id}}",
        "expect": [{"pointer": "/amount", "equals_sent": "/amount"}],
    }
    kept = {"operation_id": "/number", "keep": {"number": "/number"}}
    return {**_keyed(url), **kept, "lookup": lookup, "verify": verify}


def _queryable(url: str) -> dict[str, Any]:
    return {
        "method": "POST",
        "url": f"{url}/tickets",
        "json": {"reference": "{key}", "subject": "refund"},
        "operation_id": "/number",
        "lookup": {
            "url": f"{url}/tickets?reference={{key}}",
            "found": [{"pointer": "/count", "equals": 1}],
            "absent": [{"pointer": "/count", "equals": 0}],
            "operation_id": "/tickets/0/number",
        },
        "verify": {
            "url": f"{url}/tickets/{{operation_id}}",
            "expect": [{"pointer": "/reference", "equals": "{key}"}],
        },
    }


def _opaque(url: str) -> dict[str, Any]:
    return {"method": "POST", "url": f"{url}/charges", "json": {"amount": 120, "card": "tok_1"}}


_ARGUMENTS = {"keyed": _keyed, "keyed_looked_up": _keyed_looked_up, "queryable": _queryable, "opaque": _opaque}

KEYED = EffectKind("keyed", "invoice", "/billing/invoices")
KEYED_LOOKED_UP = EffectKind("keyed_looked_up", "invoice", "/billing/invoices")
QUERYABLE = EffectKind("queryable", "ticket", "/tickets")
OPAQUE = EffectKind("opaque", "charge", "/charges")
ALL = (KEYED, KEYED_LOOKED_UP, QUERYABLE, OPAQUE)
