"""`manage.py answer`: a person answers a request for approval from the command line, or takes it back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from approvals import request_queries, requests, withdrawals
from approvals.request_consequences import RequestAnswer
from approvals.request_queries import Share
from approvals.rules.policy_words import approval_in_words
from approvals.step_up import Authentication
from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict
from checkpoint.gates.rulings import ApprovalRule
from checkpoint.models import Approval
from checkpoint.occasions import login_name
from checkpoint.short_ids import find, short
from checkpoint.states import Decision

MOVED_ON = 3


class Command(ClearCommand):
    """Shows the request, then answers exactly what it showed."""

    help = (
        "Answer a request for approval. Exit codes: 0 answered (or answered so before, by the same person), "
        "3 the request is closed or not what was shown, 1 any other refusal. Nothing changes unless 0."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("request", help="the request's UUID, or its last 8 or more digits")
        parser.add_argument("kind", choices=[kind.value for kind in RequestAnswer], help="the answer")
        parser.add_argument("--reason", required=True, help="why; kept in the audit trail")
        parser.add_argument("--as", dest="user", metavar="USER", help="who answers; by default your login name")
        parser.add_argument("--no-input", action="store_true", help="ask nothing at a terminal, nor for a password")

    def handle(self, *args: Any, **options: Any) -> None:
        person, kind = command_line.person(options["user"] or login_name()), RequestAnswer(options["kind"])
        with command_line.clear_errors():
            visible = request_queries.requests_visible_to(person)
            request = request_queries.visible_request(person, find(visible, options["request"], noun="request").pk)
        shares = request_queries.shares_of(request)
        self.stdout.write("\n".join(_question(request, shares)))
        if kind is RequestAnswer.APPROVE and not request_queries.intact(request, shares):
            raise CommandError("This is not what was asked about: it has changed, or the record is damaged.", MOVED_ON)
        if not options["no_input"] and sys.stdin.isatty() and input(f"Answer “{kind}”? [y/N] ").lower() != "y":
            raise CommandError("Not answered; nothing has changed.")
        with command_line.clear_errors(), command_line.clear_errors(MOVED_ON, only=Conflict):
            step_up = kind is not RequestAnswer.WITHDRAW and request_queries.wants_step_up(shares, request.workflow)
            asked = command_line.authenticate(person, ask=step_up and not options["no_input"])
            self.stdout.write(_act(request, kind, person, options["reason"], Authentication(asked)))


def _act(request: Approval, kind: RequestAnswer, person: User, reason: str, authentication: Authentication) -> str:
    """Answers, and says what that made of the request."""
    known: dict[str, Any] = {"approval_id": request.pk, "person": person, "reason": reason}
    if kind is RequestAnswer.WITHDRAW:
        withdrawals.withdraw(channel=command_line.CHANNEL, **known)
        return f"Withdrawn, by {person.get_username()}."
    known |= {"arguments_hash": request.shown_hash, "authentication": authentication}
    requests.answer(kind=Decision(kind), channel=command_line.CHANNEL, **known)
    request = Approval.objects.get(pk=request.pk)
    given, needed = request.decisions.filter(kind=Decision.APPROVE).count(), request.rule["needed"]
    return f"Answered: {kind}, by {person.get_username()}. {given} of {needed} have approved; it is {request.status}."


def _question(request: Approval, shares: list[Share]) -> Iterator[str]:
    """What an answer needs, with the arguments whole: nobody decides on what was not fully shown (S37)."""
    workflow = request.workflow
    yield f"May this run? {len(shares)} step{'s' if len(shares) > 1 else ''} of {printable(workflow.kind)}"
    yield f"  workflow: …{short(workflow.pk)}, {workflow.status.replace('_', ' ')}, team {workflow.team.name}"
    yield f"  the agent's words: {printable(workflow.goal)}"
    for share in shares:
        yield from _share(share)
    ruling = request_queries.ruling_on(next(one for one in shares if one.approval.pk == request.pk), workflow)
    for reason in ruling.reasons if ruling else ():
        yield f"  why it is asked: {printable(reason)}"
    yield f"  who must allow it: {approval_in_words(ApprovalRule.from_json(request.rule))}"
    for decision in request.decisions.all():
        yield f"  answered: {decision.kind} by {printable(decision.person_name)}: {printable(decision.reason)}"
    yield f"  it is {request.status}; it can be answered until {request.expires_at:%Y-%m-%d %H:%M:%S} UTC"


def _share(share: Share) -> Iterator[str]:
    undone = share.contract.reversibility.replace("_", " ") if share.contract else "not known yet"
    yield f"  step {share.step.name}: {share.step.tool_version}, to undo it: {undone}"
    yield f"  {'arguments as planned' if share.is_template else 'arguments'}: {printable(share.text)}"
