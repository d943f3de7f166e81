"""Asking a provider over HTTP what became of an effect, as a `lookup` or `verify` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checkpoint.outcomes import (
    Absent,
    Found,
    Inconclusive,
    Inspection,
    NotVisible,
    Pending,
    Receipt,
    Verification,
    Visible,
)
from workers.registry import Call
from workers.tools import http_answer
from workers.tools.http_answer import Redact, Values
from workers.tools.http_arguments import Lookup, Verify
from workers.tools.http_exchange import Answer, Exchange


@dataclass(frozen=True)
class HttpReading:
    """What the reading requests of one call share.

    Attributes:
        sent: the JSON value that answers are compared with.
        values: what placeholders stand for.
    """

    exchange: Exchange
    redact: Redact
    sent: Any
    values: Values

    def look_up(self, lookup: Lookup) -> Inspection:
        """Sends the lookup and reads what it says.

        Raises:
            NotApplied, NoAnswer, Missing: it could not be asked.
        """
        answer = self._ask(lookup)
        facts = http_answer.facts_of(answer, lookup.keep, self.redact)
        lists = {"found": lookup.found, "absent": lookup.absent, "pending": lookup.pending}
        match [name for name, list_ in lists.items() if http_answer.all_hold(list_, answer, self.sent, self.values)]:
            case ["found"]:
                return Found(self._found(lookup, answer, facts))
            case ["absent"]:
                return Absent(facts)
            case ["pending"]:
                return Pending(facts)
            case fitting:
                fits = f"fits {' and '.join(fitting)}" if fitting else "fits none of found, absent and pending"
                return Inconclusive(f"the lookup cannot tell: {http_answer.said(answer, self.redact)}, which {fits}")

    def verify(self, verify: Verify) -> Verification:
        """Sends the verify request and checks what it expects.

        Raises:
            NotApplied, NoAnswer, Missing: it could not be asked.
        """
        answer = self._ask(verify)
        facts = http_answer.facts_of(answer, verify.keep, self.redact)
        if http_answer.all_hold(verify.expect, answer, self.sent, self.values):
            return Visible(facts)
        missing = "; ".join(http_answer.unmet(verify.expect, answer, self.sent, self.values)) or "the status is not 2xx"
        return NotVisible(f"{http_answer.said(answer, self.redact)}; {missing}", facts)

    def _found(self, lookup: Lookup, answer: Answer, facts: dict[str, Any]) -> Receipt:
        document = http_answer.document_of(answer)
        differing = [
            pointer
            for pointer, there in lookup.compare.items()
            if not http_answer.same(http_answer.at(self.sent, pointer), http_answer.at(document, there))
        ]
        return Receipt(
            operation_id=http_answer.operation_id_of(answer, lookup.operation_id, self.redact),
            facts={**facts, **({"differing": differing} if differing else {})},
            arguments_match=not differing,
        )

    def _ask(self, reading: Lookup | Verify) -> Answer:
        url = http_answer.filled(reading.url, self.values, quoted=True)
        return self.exchange.get(url, reading.headers, reading.secret_headers)


def values_of(call: Call) -> dict[str, Any]:
    """What placeholders stand for in this call."""
    facts = {f"facts.{name}": value for name, value in (call.facts or {}).items()}
    return {"key": call.key, "operation_id": call.operation_id, **facts}
