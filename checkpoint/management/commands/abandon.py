"""`manage.py abandon`: winds a workflow down."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from checkpoint import command_line, workflows
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict
from checkpoint.explaining import endings
from checkpoint.explaining.endings import Ending
from checkpoint.models import Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find
from checkpoint.states import StepStatus, WorkflowStatus

MOVED_ON = 3


class Command(ClearCommand):
    """Shows what would end, what is in the air and what stays; then does it."""

    help = (
        "Wind a workflow down: nothing new starts, what is in the air is settled, what did happen stays listed. "
        "Exit codes: 0 done (or begun before, by the same person), 3 it has ended or somebody else began, "
        "1 any other refusal."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("--reason", required=True, help="why; kept in the audit trail")
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")
        parser.add_argument("--no-input", action="store_true", help="do not ask again at a terminal")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        with command_line.clear_errors():
            visible = workflows_visible_to(user) if user else Workflow.objects.all()
            found = find(visible, options["workflow"], noun="workflow")
        self.stdout.write("\n".join(_foreseen(endings.of(found))))
        if not options["no_input"] and sys.stdin.isatty() and input("Wind it down? [y/N] ").lower() != "y":
            raise CommandError("Not done; nothing has changed.")
        with command_line.clear_errors(), command_line.clear_errors(MOVED_ON, only=Conflict):
            now = workflows.abandon(
                workflow_id=found.pk, actor=command_line.actor(user), user=user, reason=options["reason"]
            )
        if now.status == WorkflowStatus.ABANDONED:
            self.stdout.write("It has ended.")
        else:
            self.stdout.write("It is being wound down; it ends when what is in the air is settled.")


def _foreseen(ending: Ending) -> Iterator[str]:
    yield f"ends without running: {ending.ending.count}"
    for step in ending.ending.rows:
        yield f"  {printable(step.name)}: {step.status}"
    yield f"still in the air: {ending.in_the_air.count}"
    for step in ending.in_the_air.rows:
        yield f"  {printable(step.name)}: {endings.STILL_HAPPENS[StepStatus(step.status)]}"
    yield f"took effect and stays: {ending.stay.count}"
    for step in ending.stay.rows:
        yield f"  {printable(step.name)}: {step.standing} {printable(step.operation_id)}".rstrip()
    yield f"questions that close: {ending.questions}; requests for approval withdrawn: {ending.requests}"
