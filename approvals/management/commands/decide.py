"""`manage.py decide`: a person answers a case from the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from approvals import consequences
from approvals.decisions import decide
from approvals.queries import cases_visible_to
from approvals.where_to_look import place
from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict
from checkpoint.models import Case
from checkpoint.occasions import login_name
from checkpoint.short_ids import find
from checkpoint.states import CaseReason, Decision

MOVED_ON = 3


class Command(ClearCommand):
    """Shows the question, then decides on exactly what it showed."""

    help = (
        "Answer a case. Exit codes: 0 decided (or decided so before, by the same person), "
        "3 the case is closed, moved on or does not allow this answer, 1 any other refusal. Nothing changes unless 0."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("case", help="the case's UUID, or its last 8 or more digits")
        parser.add_argument("kind", choices=[kind.value for kind in Decision], help="the answer")
        parser.add_argument("--reason", required=True, help="why; kept in the audit trail")
        parser.add_argument("--operation-id", default="", help="the provider's id, where you found one")
        parser.add_argument("--as", dest="user", metavar="USER", help="who decides; by default your login name")
        parser.add_argument("--no-input", action="store_true", help="do not ask again at a terminal")

    def handle(self, *args: Any, **options: Any) -> None:
        person = command_line.person(options["user"] or login_name())
        kind = Decision(options["kind"])
        with command_line.clear_errors():
            cases = cases_visible_to(person).select_related("step", "step__tool_version")
            case = find(cases, options["case"], noun="case")
        self.stdout.write("\n".join(_question(case)))
        if not options["no_input"] and sys.stdin.isatty() and input(f"Answer “{kind}”? [y/N] ").lower() != "y":
            raise CommandError("Not decided; nothing has changed.")
        with command_line.clear_errors(), command_line.clear_errors(MOVED_ON, only=Conflict):
            decision = decide(
                case_id=case.pk,
                kind=kind,
                person=person,
                channel=command_line.CHANNEL,
                reason=options["reason"],
                operation_id=options["operation_id"],
                step_version=case.step.version,
                arguments_hash=case.step.arguments_hash,
            )
        self.stdout.write(f"Decided: {decision.kind}, by {decision.person_name}.")


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
    answers = [f"{kind} ({consequences.title(CaseReason(case.reason), kind)})" for kind in rule.decisions]
    yield f"  answers: {', '.join(answers)}"
