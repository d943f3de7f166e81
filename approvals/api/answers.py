"""Reads a person's answer out of a body, and says what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rest_framework.request import Request

from approvals.decisions import OPERATION_ID_LIMIT, REASON_LIMIT
from approvals.models import Decision, Signature
from checkpoint.api.bodies import body_of
from checkpoint.api.replies import Keep, reply
from checkpoint.errors import Fault, SubmissionInvalid
from checkpoint.kept_replies import Reply
from checkpoint.models import Workflow
from checkpoint.planning.members import Members
from checkpoint.states import Decision as DecisionKind

_LONGEST_HASH = 64 + 2  # bytes, with its quotes
_REASON_BYTES = REASON_LIMIT * 4  # the verb counts characters


@dataclass(frozen=True)
class Given:
    """What was sent; of a request for approval without operation id, version and data."""

    kind: DecisionKind
    reason: str
    arguments_hash: str
    operation_id: str = ""
    step_version: int = 0
    data: Any = None


@dataclass
class KeptAnswer:
    """Keeps the reply in the transaction of the answer."""

    _keep: Keep
    _made: list[Reply] = field(default_factory=list)

    def keep(self, answered: Decision | Signature) -> None:
        """For the verb to call alongside."""
        self._made.append(_reply(answered))
        self._keep(self._made[-1])

    def reply_to(self, answered: Decision | Signature) -> Reply:
        """The reply; kept now where the verb found that the person had given this answer before (S18)."""
        if not self._made:
            self.keep(answered)
        return self._made[-1]


def kept(keep: Keep) -> KeptAnswer:
    """What keeps one answer."""
    return KeptAnswer(keep)


def case_answer(request: Request) -> Given:
    """The answer to a case. Raises SubmissionInvalid with every fault."""
    members, faults = _members(request)
    given = Given(
        kind=_kind(members),
        reason=members.text("reason", longest=_REASON_BYTES),
        arguments_hash=members.text("arguments_hash", longest=_LONGEST_HASH, default=""),
        operation_id=members.text("operation_id", longest=OPERATION_ID_LIMIT * 4, default=""),
        step_version=members.take("step_version", int) or 0,
        data=members.value("data", None),
    )
    return _whole(given, members, faults)


def request_answer(request: Request) -> Given:
    """The answer to a request for approval. Raises SubmissionInvalid with every fault."""
    members, faults = _members(request)
    given = Given(
        kind=_kind(members),
        reason=members.text("reason", longest=_REASON_BYTES),
        arguments_hash=members.text("arguments_hash", longest=_LONGEST_HASH),
    )
    return _whole(given, members, faults)


def _members(request: Request) -> tuple[Members, list[Fault]]:
    document = body_of(request).document
    faults = list(document.faults)
    return Members(document.value, "", faults), faults


def _kind(members: Members) -> DecisionKind:
    text = members.take("kind", str)
    if text in list(DecisionKind):
        return DecisionKind(text)
    if text is not None:
        members.fault("kind", message=f"must be one of {', '.join(DecisionKind)}")
    return DecisionKind.ACKNOWLEDGE  # is not used: there is a fault


def _whole(given: Given, members: Members, faults: list[Fault]) -> Given:
    members.refuse_the_rest()
    if faults:
        raise SubmissionInvalid(faults)
    return given


def _reply(answered: Decision | Signature) -> Reply:
    about = answered.case or (answered.approval if isinstance(answered, Decision) else None)
    assert about is not None  # a decision is about one of the two
    is_decision = isinstance(answered, Decision)
    content = {
        "recorded": "decision" if is_decision else "signature",
        "kind": answered.kind,
        "person_name": answered.person_name,
        "at": answered.decided_at if isinstance(answered, Decision) else answered.signed_at,
        "workflow_status": Workflow.objects.values_list("status", flat=True).get(pk=about.workflow_id),
    }
    return reply(201, content)
