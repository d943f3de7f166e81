"""One call: outside any transaction, because it may take long and cannot be rolled back.

Only `NotApplied` says that nothing happened. Whatever else a tool raises leaves the outcome unknown.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from pydantic import BaseModel, ValidationError

from checkpoint import crash_points
from checkpoint.canonical import check
from checkpoint.models import Activity
from checkpoint.outcomes import (
    Absent,
    Found,
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Outcome,
    OutcomeUnknown,
    Pending,
    Receipt,
    Refused,
    Unanswered,
    Verification,
    Visible,
)
from checkpoint.turns.calls import Claim
from workers.flight_recorder import Slot
from workers.registry import Call, Deadline, Tool, reports_sending

log = logging.getLogger(__name__)

MESSAGE_LIMIT = 2000


def make_call(tool: Tool, claim: Claim, deadline: Deadline, slot: Slot | None = None) -> Outcome:
    """Makes the call that was claimed and says how it went; never raises. `slot` is where its flight is recorded."""
    flight = _Flight(claim, slot)
    try:
        outcome = _act(tool, claim, deadline, flight)
        _check_answer(claim, outcome)
    except Exception as error:
        # The answer that the tool has told stands, whatever went wrong after it.
        outcome = flight.receipt or _without_answer(claim, error)
    flight.note(outcome)
    return outcome


class _Flight:
    """What a tool tells of one call while it makes it, held against the same checks as what it returns."""

    def __init__(self, claim: Claim, slot: Slot | None) -> None:
        self._claim = claim
        self._slot = slot
        self.receipt: Receipt | None = None

    def sending(self) -> None:
        if self._slot is not None:
            self._slot.sending()
        crash_points.reach("call/sending", self._claim.step_name)

    def answered(self, receipt: Receipt) -> None:
        _check_answer(self._claim, receipt)
        self.receipt = receipt
        self.note(receipt)
        crash_points.reach("call/answered", self._claim.step_name)

    def note(self, outcome: Outcome) -> None:
        """Notes an answer that settles the attempt; every other one leaves what was noted."""
        if self._slot is None or not isinstance(outcome, Receipt | Refused):
            return
        if isinstance(outcome, Refused) or outcome.arguments_match:
            self._slot.answered(outcome)


def _act(tool: Tool, claim: Claim, deadline: Deadline, flight: _Flight) -> Outcome:
    arguments = _arguments(tool, claim)
    match claim.activity:
        case Activity.EXECUTE:
            return _execute(tool, arguments, _call(claim, deadline, flight=flight))
        case Activity.INSPECT:
            return tool.inspect(arguments, _call(claim, deadline))
        case Activity.VERIFY:
            return tool.verify(arguments, _call(claim, deadline, json.loads(claim.facts or "{}")))


def _execute(tool: Tool, arguments: BaseModel, call: Call) -> Outcome:
    if reports_sending(tool):
        call.deadline.check_before_send()
    else:
        call.sending()
    return tool.execute(arguments, call)


def _without_answer(claim: Claim, error: Exception) -> Outcome:
    if isinstance(error, NotApplied):
        return _refused(claim, error)
    if isinstance(error, Unanswered):
        return _unknown(claim, str(error))
    log.info("%s of %s did not say how it went", claim.activity.value, claim.tool, exc_info=error)
    return _unknown(claim, f"{type(error).__name__}: {error}")


def _arguments(tool: Tool, claim: Claim) -> BaseModel:
    """What was written ahead, as the tool reads it. Where the tool cannot, nothing was sent."""
    try:
        return tool.Arguments.model_validate_json(claim.arguments, strict=True)
    except ValidationError as error:
        raise NotApplied(
            f"{claim.tool} cannot read its arguments: {error}", code="unreadable", permanent=True
        ) from error


def _call(claim: Claim, deadline: Deadline, facts: dict[str, Any] | None = None, flight: _Flight | None = None) -> Call:
    return Call(
        workflow_id=str(claim.workflow_id),
        step_name=claim.step_name,
        key=claim.idempotency_key,
        fence=claim.fence,
        attempt=claim.attempt_number,
        deadline=deadline,
        operation_id=claim.operation_id or None,
        facts=facts,
        flight=flight,
    )


def _refused(claim: Claim, refusal: NotApplied) -> Outcome:
    if claim.activity is Activity.EXECUTE:
        return Refused(_storable(str(refusal)), refusal.code, refusal.retry_after, refusal.permanent)
    return _unknown(claim, str(refusal))


_ANSWERS: dict[Activity, Any] = {Activity.EXECUTE: Receipt, Activity.INSPECT: Inspection, Activity.VERIFY: Verification}


def _check_answer(claim: Claim, outcome: Outcome) -> None:
    """Raises where a tool answered with something else than it was asked for, or with values that cannot be stored."""
    if not isinstance(outcome, _ANSWERS[claim.activity]):
        raise TypeError(f"{claim.activity.value} answered with {type(outcome).__name__}")
    match outcome:
        case Receipt(operation_id, facts) | Found(Receipt(operation_id, facts)):
            check({"operation_id": operation_id, "facts": facts})
        case Absent(facts) | Pending(facts) | Visible(facts):
            check(facts)
        case NotVisible(message, facts):
            check({"message": message, "facts": facts})
        case Inconclusive(message):
            check(message)


def _storable(message: str) -> str:
    """A message as PostgreSQL can store it: bounded, no NUL, no lone surrogates."""
    return message[:MESSAGE_LIMIT].replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _unknown(claim: Claim, message: str) -> Outcome:
    message = _storable(message)
    match claim.activity:
        case Activity.EXECUTE:
            return OutcomeUnknown(message)
        case Activity.INSPECT:
            return Inconclusive(message)
        case Activity.VERIFY:
            return NotVisible(message)
