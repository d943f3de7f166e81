"""One step of a run: found or planned, begun, recorded. Generators, as in `wire`; nothing is sent here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from checkpoint_client.errors import NotApplied, NotBegun, NotRecorded, Refused, Unreachable, Waiting
from checkpoint_client.wire import Pause, Steps, get, post

_DONE = ("verified", "committed")
_LONGEST_MESSAGE = 500  # characters
_POLL = 1.0  # seconds between two looks at whether a step may begin
_WRAPPED = "value"


@dataclass(frozen=True)
class Receipt:
    """What a step came to.

    Attributes:
        facts: what is worth keeping; JSON values, at most 16 KiB.
        operation_id: the provider's own id of the effect, if it gives one.
        reading: what was read of the outcome afterwards; None where nothing was.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    operation_id: str = ""
    reading: Mapping[str, Any] | None = None


@dataclass
class Attempt:
    """A step that is begun, or was done before.

    Attributes:
        is_new: whether it is to be carried out now; otherwise `receipt` has what is recorded.
        arguments: exactly what was allowed.
        idempotency_key: for the provider; the same in every attempt.
    """

    step: str
    step_id: str
    is_new: bool
    arguments: dict[str, Any] = field(default_factory=dict)
    idempotency_key: str = ""
    fence: int = 0
    deadline_at: str = ""
    receipt: Receipt | None = None

    def done(self, receipt: Receipt) -> None:
        """Says how it went; recorded at the end of the block."""
        self.receipt = receipt


@dataclass(frozen=True)
class Plan:
    """What a run is called and what it is for."""

    reference: str
    goal: str
    team: str = ""
    constraints: tuple[str, ...] = ()


def find(plan: Plan) -> Steps[dict[str, Any] | None]:
    """The workflow of the run; None where there is none yet."""
    page = yield from get("workflows/", reference=plan.reference, **_team(plan))
    items: list[dict[str, Any]] = page["items"]
    return items[0] if items else None


def begin(plan: Plan, name: str, tool: str, arguments: Mapping[str, Any], *, wait: float) -> Steps[Attempt]:
    """Begins a step of the run, planning it first where it is new.

    Args:
        wait: seconds to wait until it may begin, for an approval for instance.

    Raises:
        Waiting: it may not begin yet.
        NotBegun: an earlier run began it and has not said how it went, or it has ended.
    """
    step = yield from _planned(plan, {"name": name, "tool": tool, "arguments": dict(arguments)})
    if step["status"] in _DONE:
        return (yield from _recorded(step))
    ends = time.monotonic() + wait
    while True:
        try:
            reply = yield from post(f"steps/{step['id']}/begin/", {})
        except Refused as refusal:
            if refusal.code == "step_not_begun":
                raise NotBegun(f"Step “{name}” was not run: {refusal.problem['detail']}") from refusal
            raise
        if reply.status == 201:
            begun = reply.body
            return Attempt(
                step=name,
                step_id=step["id"],
                is_new=True,
                arguments=begun["arguments"],
                idempotency_key=begun["idempotency_key"],
                fence=begun["fence"],
                deadline_at=begun["deadline_at"],
            )
        if reply.body["waits_for"] == "nothing":
            return (yield from _recorded(step))
        if reply.body["waits_for"] == "question" or time.monotonic() >= ends:
            raise Waiting(name, reply.body["waits_for"], reply.body["detail"], reply.body["look_at"])
        yield Pause(_POLL)


def record(attempt: Attempt, report: dict[str, Any]) -> Steps[None]:
    """Records how the attempt went.

    Raises:
        NotRecorded: it could not be recorded; the report is in the error.
    """
    try:
        yield from post(f"steps/{attempt.step_id}/record/", report)
    except (Refused, Unreachable) as error:
        raise NotRecorded(attempt.step, attempt.step_id, report, str(error)) from error


def success(attempt: Attempt, receipt: Receipt) -> dict[str, Any]:
    """The report of a receipt."""
    report: dict[str, Any] = {"fence": attempt.fence, "outcome": "receipt", "facts": dict(receipt.facts)}
    if receipt.operation_id:
        report["operation_id"] = receipt.operation_id
    if receipt.reading is not None:
        report["reading"] = dict(receipt.reading)
    return report


def failure(attempt: Attempt, error: BaseException) -> dict[str, Any]:
    """The report of an exception: unknown, unless it says that nothing happened."""
    message = f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE]
    report: dict[str, Any] = {"fence": attempt.fence, "outcome": "unknown", "message": message}
    if isinstance(error, NotApplied):
        report |= {"outcome": "not_applied", "message": str(error)[:_LONGEST_MESSAGE] or "not applied"}
        report |= {"code": error.code, "permanent": error.permanent}
        if error.retry_after is not None:
            report["retry_after"] = error.retry_after
    return report


def receipt_of(value: Any) -> Receipt:
    """What a function returned, as a receipt."""
    if isinstance(value, Receipt):
        return value
    return Receipt(value if isinstance(value, Mapping) else {_WRAPPED: value})


def value_of(receipt: Receipt) -> Any:
    """What the function returned, from its receipt; a Receipt where it had an operation id or a reading."""
    if receipt.operation_id or receipt.reading is not None:
        return receipt
    facts = dict(receipt.facts)
    return facts[_WRAPPED] if list(facts) == [_WRAPPED] else facts


def _planned(plan: Plan, step: dict[str, Any]) -> Steps[dict[str, Any]]:
    """The step as the server has it: looked for first, then submitted or appended."""
    while True:
        workflow = yield from find(plan)
        if workflow is None:
            document = {"goal": plan.goal, "reference": plan.reference, "sealed": False, "steps": [step]}
            if plan.constraints:
                document["constraints"] = list(plan.constraints)
            try:
                yield from post("workflows/", document, **_team(plan))
            except Refused as refusal:
                if refusal.code != "reference_taken":
                    raise
            continue
        if found := (yield from _step_of(workflow["id"], step["name"])):
            return found
        reply = yield from post(f"workflows/{workflow['id']}/steps/", {"steps": [step]})
        appended: dict[str, Any] = reply.body["steps"][0]
        return appended


def _step_of(workflow_id: str, name: str) -> Steps[dict[str, Any] | None]:
    address: str | None = f"workflows/{workflow_id}/steps/"
    query: dict[str, str] = {}
    while address:
        page = yield from get(address, **query)
        for step in page["items"]:
            if step["name"] == name and step["status"] != "superseded":
                found: dict[str, Any] = step
                return found
        after = (page["next"] or "").rpartition("after=")[2]
        query, address = {"after": after}, address if after else None
    return None


def _recorded(step: dict[str, Any]) -> Steps[Attempt]:
    shown = yield from get(f"steps/{step['id']}/")
    receipt = Receipt(shown["result"] or {}, shown["operation_id"])
    return Attempt(
        step=step["name"],
        step_id=step["id"],
        is_new=False,
        arguments=shown["arguments"] or {},
        idempotency_key=shown["idempotency_key"],
        receipt=receipt,
    )


def _team(plan: Plan) -> dict[str, str]:
    return {"team": plan.team} if plan.team else {}
