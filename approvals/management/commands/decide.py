"""`manage.py decide`: a person answers a case from the command line."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from approvals import consequences, signatures
from approvals.casework import assignments
from approvals.casework.case_work import how_it_closed
from approvals.decisions import decide
from approvals.models import Signature
from approvals.queries import cases_visible_to
from approvals.step_up import Authentication
from approvals.where_to_look import place
from checkpoint import command_line
from checkpoint.canonical import parse
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict, ValueNotCanonical
from checkpoint.explaining import waiting
from checkpoint.gates.rulings import DecisionRule
from checkpoint.models import Case, Step
from checkpoint.occasions import login_name
from checkpoint.short_ids import find, short
from checkpoint.states import STEP_TERMINAL, CaseReason, CaseStatus, Decision, StepStatus

MOVED_ON = 3
ASKED_AGAIN = 4
TIME_IS_OVER = 6


def _json(text: str) -> Any:
    try:
        return parse(text)
    except ValueNotCanonical as error:
        raise ArgumentTypeError(str(error)) from None


class Command(ClearCommand):
    """Shows the question, then decides on exactly what it showed."""

    help = (
        "Answer a case. Exit codes: 0 decided, or signed where the policy wants more people (or so before, by the same "
        "person), 3 the case is closed, moved on or does not allow this answer, 1 any other refusal; nothing changes "
        "then. With --wait also 4 people are asked again about the step, 6 the time is over."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("case", help="the case's UUID, or its last 8 or more digits")
        parser.add_argument("kind", choices=[kind.value for kind in Decision], help="the answer")
        parser.add_argument("--reason", required=True, help="why; kept in the audit trail")
        parser.add_argument("--operation-id", default="", help="the provider's id, where you found one")
        parser.add_argument("--data", type=_json, metavar="JSON", help="with “answer”: what the task's form asks for")
        parser.add_argument("--as", dest="user", metavar="USER", help="who decides; by default your login name")
        parser.add_argument("--no-input", action="store_true", help="ask nothing at a terminal, nor for a password")
        parser.add_argument(
            "--wait",
            nargs="?",
            type=command_line.seconds,
            const=float("inf"),
            metavar="SECONDS",
            help="then follow the step, up to verified; for ever, or so long",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = command_line.person(options["user"] or login_name())
        kind = Decision(options["kind"])
        with command_line.clear_errors():
            cases = cases_visible_to(person).select_related("step", "step__tool_version", "workflow__team")
            case = find(cases, options["case"], noun="case")
            self.stdout.write("\n".join(_question(case)))
            step_up = case.status == CaseStatus.OPEN and signatures.wants_step_up(case)
        if not options["no_input"] and sys.stdin.isatty() and input(f"Answer “{kind}”? [y/N] ").lower() != "y":
            raise CommandError("Not decided; nothing has changed.")
        asked = command_line.authenticate(person, ask=step_up and not options["no_input"])
        with command_line.clear_errors(), command_line.clear_errors(MOVED_ON, only=Conflict):
            answered = decide(
                case_id=case.pk,
                kind=kind,
                person=person,
                channel=command_line.CHANNEL,
                reason=options["reason"],
                operation_id=options["operation_id"],
                step_version=case.step.version,
                arguments_hash=case.step.arguments_hash,
                authentication=Authentication(asked),
                data=options["data"],
            )
        if isinstance(answered, Signature):
            self.stdout.write(f"Signed: {answered.kind}, by {answered.person_name}. {_state_of(answered)}")
            return
        self.stdout.write(f"Decided: {answered.kind}, by {answered.person_name}.")
        if options["wait"] is not None:
            self._follow(case, options["wait"])

    def _follow(self, case: Case, seconds: float) -> None:
        """Says what happens with the step, as the case's page does."""
        for line in waiting.follow_step(case.step_id, seconds=seconds):
            self.stdout.write(line)
        status = StepStatus(Step.objects.values_list("status", flat=True).get(pk=case.step_id))
        if status in STEP_TERMINAL:
            return
        if not waiting.at_rest(case.step_id):
            self.stderr.write(f"Not at rest after {seconds:g} s: {consequences.HAPPENING[status]}")
            sys.exit(TIME_IS_OVER)
        self.stderr.write(f"People are asked again about this step: `manage.py explain {short(case.workflow_id)}`.")
        sys.exit(ASKED_AGAIN)


def _state_of(signature: Signature) -> str:
    """What the signature waits for; nothing any more, where the case was closed since."""
    if signature.case.status != CaseStatus.OPEN:
        return how_it_closed(signature.case)
    return signatures.still_needed(signature)


def _question(case: Case) -> Iterator[str]:
    """What a decision needs, with the arguments whole: nobody decides on what was not fully shown (S37)."""
    step, rule = case.step, case.rule
    yield f"{rule.title} ({case.reason})"
    yield printable(case.sentence)
    for title in ("known", "unknown", "tried"):
        for line in case.findings.get(title, []):
            yield f"  {title}: {printable(line)}"
    if said := case.findings.get("said"):
        yield f"  the tool's words: {printable(said)}"
    yield f"  arguments: {printable(step.arguments or step.template)}"
    yield f"  key: {step.idempotency_key or 'none yet'}"
    look = place(
        step.tool_version.contract(step.variant) if step.variant else None,
        key=step.idempotency_key,
        operation_id=step.operation_id,
    )
    if look.sentence:
        yield f"  where to look: {printable(look.sentence)} {look.link}".rstrip()
    if held := assignments.current(case):
        yield f"  {printable(held.person_name)} has this case; it can be decided all the same"
    yield from _answers(case)


def _answers(case: Case) -> Iterator[str]:
    """What the reason and the policy in force allow, and who has answered already."""
    if case.status != CaseStatus.OPEN:
        yield f"  closed: {printable(how_it_closed(case))}"
        return
    rules = signatures.rules_of(case)
    answers = [f"{kind} ({consequences.title(CaseReason(case.reason), kind)}){_people(rules[kind])}" for kind in rules]
    yield f"  answers: {', '.join(answers)}"
    for signature in signatures.on(case):
        yield f"  answered: {signature.kind} by {printable(signature.person_name)}: {printable(signature.reason)}"


def _people(rule: DecisionRule) -> str:
    needed = f" by {rule.needed} people" if rule.needed > 1 else ""
    return f"{needed} of {' or '.join(rule.groups)}" if rule.groups else needed
