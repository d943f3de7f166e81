"""What an agent sends about a step that it carries out, read with all faults at once."""

from __future__ import annotations

import math
from typing import Any

from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.outcomes import Execution, OutcomeUnknown, Receipt, Refused
from checkpoint.planning.documents import Document
from checkpoint.planning.members import Members, bytes_of
from checkpoint.rows.evidence_log import FACTS_LIMIT

LONGEST_MESSAGE = 4000  # bytes
_OUTCOMES = ("receipt", "not_applied", "unknown")


def lease_of(document: Document) -> float | None:
    """The seconds of a lease that a body asks for; None where it does not."""
    faults: list[Fault] = []
    members = Members(document.value, "", faults)
    seconds = _number(members, "lease_seconds")
    _close(members, document, faults)
    return seconds


def lease_and_fence(document: Document) -> tuple[float, int]:
    """The seconds and the fence of a heartbeat."""
    faults: list[Fault] = []
    members = Members(document.value, "", faults)
    seconds, fence = _number(members, "lease_seconds"), members.take("fence", int)
    if seconds is None and not faults:
        members.fault("lease_seconds", message="is missing")
    _close(members, document, faults)
    return seconds or 0.0, fence or 0


def report_in(document: Document) -> tuple[int, Execution]:
    """The fence, and how the call went.

    Raises:
        SubmissionInvalid: every fault.
    """
    faults: list[Fault] = []
    members = Members(document.value, "", faults)
    members.refuse_reasoning()
    fence, kind = members.take("fence", int), members.take("outcome", str)
    if kind is not None and kind not in _OUTCOMES:
        members.fault("outcome", message=f"must be one of {', '.join(_OUTCOMES)}")
    outcome = _receipt(members) if kind == "receipt" else _other(members, kind or "")
    _close(members, document, faults)
    return fence or 0, outcome


def _receipt(members: Members) -> Receipt:
    operation_id = members.text("operation_id", longest=255, default="")
    reading = None if members.value("reading", None) is None else _facts(members, "reading")
    return Receipt(operation_id or None, _facts(members, "facts"), reading=reading)


def _other(members: Members, kind: str) -> Execution:
    message = members.text("message", longest=LONGEST_MESSAGE)
    if kind != "not_applied":
        return OutcomeUnknown(message)
    code = members.text("code", longest=60, default="refused")
    after, permanent = _number(members, "retry_after"), members.take("permanent", bool, default=False)
    return Refused(message, code=code, retry_after=after, permanent=bool(permanent))


def _facts(members: Members, name: str) -> dict[str, Any]:
    facts = members.take(name, dict, {}) or {}
    if (size := bytes_of(facts)) > FACTS_LIMIT:
        members.fault(name, message=f"has {size} bytes; the limit is {FACTS_LIMIT}; keep large things as artifacts")
    return facts


def _number(members: Members, name: str) -> float | None:
    value = members.value(name, None)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        members.fault(name, message="must be a number of seconds, 0 or more")
        return None
    return float(value)


def _close(members: Members, document: Document, faults: list[Fault]) -> None:
    members.refuse_the_rest()
    if found := [*document.faults, *faults]:
        raise SubmissionInvalid(found)
