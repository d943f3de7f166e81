"""What the page of one request shows: what would run, why it is asked, who answered, and the answers that it offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest

from approvals import request_consequences, request_queries
from approvals.consequences import HAPPENING
from approvals.console import passwords
from approvals.console.answers import Typed
from approvals.inbox.question_list import next_question
from approvals.request_consequences import TITLES, Asking, RequestAnswer
from approvals.request_queries import Share
from approvals.requests import refusal_of
from approvals.rules.policy_words import approval_in_words
from approvals.withdrawals import may_withdraw
from checkpoint import clock
from checkpoint.contracts import Reversibility
from checkpoint.errors import DecisionNotAllowed
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Approval, Step
from checkpoint.permissions import Person
from checkpoint.states import OPEN_REQUESTS, STEP_TERMINAL, ApprovalStatus, Decision, StepStatus

_NOT_RUN = [StepStatus.PLANNED, StepStatus.PREPARED, StepStatus.FAILED]
_HAPPENED = [StepStatus.COMMITTED, StepStatus.VERIFIED]


# What became of a request, for the heading; who answered what stands beside it.
_OUTCOMES = {
    ApprovalStatus.APPROVED: "It may run",
    ApprovalStatus.CONSUMED: "It was allowed to run, and this allowance is used",
    ApprovalStatus.REJECTED: "It must not run",
    ApprovalStatus.RETURNED: "The agent was asked to change it",
    ApprovalStatus.EXPIRED: "Nobody can answer any more: its time was over",
    ApprovalStatus.WITHDRAWN: "It was taken back",
    ApprovalStatus.SUPERSEDED: "Nobody needs to answer any more: something changed",
}


@dataclass(frozen=True)
class Offer:
    """One answer as the page offers it."""

    kind: RequestAnswer
    title: str
    consequence: str
    warning: str
    typed: Typed


def context(found: Approval, request: HttpRequest, typed: Typed) -> dict[str, Any]:
    """What the template needs."""
    person = request.user
    shares, rule, step = request_queries.shares_of(found), ApprovalRule.from_json(found.rule), found.step
    intact, refusal = request_queries.intact(found, shares), refusal_of(found, person)
    late = found.status == ApprovalStatus.PENDING and clock.now() >= found.expires_at
    asking = _asking(found, shares, rule)
    kinds = _kinds(found, person, answerable=intact and not refusal and not late)
    return {
        "approval": found,
        "step": step,
        "shares": shares,
        "rule": rule,
        "terms": approval_in_words(rule),
        "reasons": _reasons(found, shares),
        "irreversible": asking.gravest is Reversibility.IRREVERSIBLE,
        "given": asking.given,
        "intact": intact,
        "late": late,
        "refusal": refusal,
        "offers": [_offer(kind, asking, typed) for kind in kinds],
        "typed_lost": typed.kind not in kinds,
        "typed": typed,
        "needs_password": bool(kinds) and not passwords.is_recent(request) and _wants_step_up(found, shares),
        "settled": found.status not in OPEN_REQUESTS and step.status in STEP_TERMINAL,
        "happening": _happening(found),
        "outcome": _OUTCOMES.get(ApprovalStatus(found.status), ""),
        "following": None if found.status == ApprovalStatus.PENDING else next_question(person),
        **_place_in_plan(found, shares),
    }


def _wants_step_up(found: Approval, shares: list[Share]) -> bool:
    """Where the policy cannot be read, nobody answers, with or without a password."""
    try:
        return request_queries.wants_step_up(shares, found.workflow)
    except DecisionNotAllowed:
        return False


def _happening(found: Approval) -> str:
    if found.status == ApprovalStatus.RETURNED:
        return "Nothing runs until the agent has changed it."
    return HAPPENING[StepStatus(found.step.status)]


def seen(found: Approval) -> str:
    """Names everything on the page that can change. Its forms are left alone while nothing else does."""
    parts = (found.status, found.decisions.count(), found.step.version, found.workflow.version)
    return "-".join(str(part) for part in parts)


def _kinds(found: Approval, person: Person, *, answerable: bool) -> list[RequestAnswer]:
    asked = found.status == ApprovalStatus.PENDING and answerable
    kinds = [RequestAnswer.APPROVE, RequestAnswer.REJECT] if asked else []
    if asked and not found.step.attempt_count:
        kinds.append(RequestAnswer.REQUEST_CHANGES)
    if found.status in OPEN_REQUESTS and may_withdraw(found, person):
        kinds.append(RequestAnswer.WITHDRAW)
    return kinds


def _offer(kind: RequestAnswer, asking: Asking, typed: Typed) -> Offer:
    return Offer(
        kind=kind,
        title=TITLES[kind],
        consequence=request_consequences.sentence(kind, asking),
        warning=request_consequences.warning(kind, asking),
        typed=typed if typed.kind == kind else Typed(),
    )


def _asking(found: Approval, shares: list[Share], rule: ApprovalRule) -> Asking:
    others = found.workflow.steps.exclude(pk__in=[share.step.pk for share in shares])
    counted = others.aggregate(
        waiting=Count("id", filter=Q(status__in=_NOT_RUN)), happened=Count("id", filter=Q(status__in=_HAPPENED))
    )
    scale = list(Reversibility)
    return Asking(
        step=found.step.name,
        gravest=max((_reversibility(share.step) for share in shares), key=scale.index),
        rule=rule,
        covered=len(shares),
        given=sum(decision.kind == Decision.APPROVE for decision in found.decisions.all()),
        **counted,
    )


def _reversibility(step: Step) -> Reversibility:
    """That of the contract which holds for the arguments; before they are there, the gravest that can."""
    variants = step.tool_version.variants
    possible = [each["contract"]["reversibility"] for each in variants if step.variant in ("", each["name"])]
    return max(map(Reversibility, possible), key=list(Reversibility).index)


def _reasons(found: Approval, shares: list[Share]) -> list[str]:
    share = next(one for one in shares if one.approval.pk == found.pk)
    ruling = request_queries.ruling_on(share, found.workflow)
    return list(ruling.reasons) if ruling else ["The policy that asked cannot be read any more."]


def _place_in_plan(found: Approval, shares: list[Share]) -> dict[str, Any]:
    """What ran before, and what would follow beyond what is asked for."""
    covered = {share.step.pk for share in shares}
    steps = [step for step in request_queries.outline(found.workflow) if step.pk not in covered]
    before = [step for step in steps if step.status in _HAPPENED or step.position < found.step.position]
    return {"before": before, "behind": [step for step in steps if step not in before]}
