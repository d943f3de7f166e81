"""`manage.py compensate`: has the effect of a step undone."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from checkpoint import command_line, compensations
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict
from checkpoint.models import Step, Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find
from checkpoint.states import StepStatus

REFUSED = 3


class Command(ClearCommand):
    """Shows the call that would be made; then has it made, as a workflow of its own."""

    help = (
        "Undo what a step did, by the call that its tool declares, in a new workflow. Exit codes: 0 asked for (or "
        "asked before, by the same person), 3 it cannot be undone, is not settled, or somebody else asked, "
        "1 any other refusal."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("step", help="the step's name")
        parser.add_argument("--reason", required=True, help="why; kept in the audit trail")
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")
        parser.add_argument("--no-input", action="store_true", help="do not ask again at a terminal")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        with command_line.clear_errors():
            visible = workflows_visible_to(user) if user else Workflow.objects.all()
            found = find(visible.defer("input"), options["workflow"], noun="workflow")
        step = found.steps.exclude(status=StepStatus.SUPERSEDED).filter(name=options["step"]).first()
        if step is None:
            raise CommandError(f"The workflow has no step {options['step']}.")
        with command_line.clear_errors(), command_line.clear_errors(REFUSED, only=Conflict):
            self._show(step)
            if not options["no_input"] and sys.stdin.isatty() and input("Have it undone? [y/N] ").lower() != "y":
                raise CommandError("Not done; nothing has changed.")
            made = compensations.request(
                step_id=step.pk,
                step_version=step.version,
                actor=command_line.actor(user),
                user=user,
                reason=options["reason"],
            )
        self.stdout.write(f"Asked for: workflow {made.pk}")

    def _show(self, step: Step) -> None:
        if compensations.under_way(step) is None:
            undoing = compensations.foresee(step)
            self.stdout.write(f"would call {undoing.tool.name} with {printable(undoing.arguments)}")
