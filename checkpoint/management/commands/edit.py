"""`manage.py edit`: other arguments for a step that was not sent."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.edits import edit_step
from checkpoint.errors import Conflict, SubmissionInvalid
from checkpoint.management.files import document_in, refuse
from checkpoint.models import Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find

MOVED_ON = 3


class Command(ClearCommand):
    """Another step takes the place of the old one, whose key is closed; it is asked about anew."""

    help = (
        "Change the arguments of a step that was not sent. Exit codes: 0 changed, 2 faults in the file, 3 the step "
        "was sent, or an earlier edit put this very call aside, 1 any other refusal. Nothing changes unless 0."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("step", help="the step's name")
        parser.add_argument("file", help="its new arguments as JSON or YAML, or - for standard input")
        parser.add_argument("--reason", required=True, help="why; kept in the audit trail")
        parser.add_argument(
            "--intent", default="", help="what the new call is for, where its old name stands for the old"
        )
        parser.add_argument("--as", dest="user", metavar="USER", help="change it as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        visible = workflows_visible_to(user) if user else Workflow.objects.all()
        with command_line.clear_errors():
            workflow = find(visible.defer("input"), options["workflow"], noun="workflow")
        try:
            with command_line.clear_errors(MOVED_ON, only=Conflict):
                step = edit_step(
                    workflow_id=workflow.pk,
                    name=options["step"],
                    arguments=document_in(options["file"]),
                    actor=command_line.actor(user),
                    reason=options["reason"],
                    user=user,
                    intent=options["intent"],
                )
        except SubmissionInvalid as error:
            raise refuse(self, error) from error
        self.stdout.write(f"Changed {step.name}: {printable(step.arguments or step.template)}")
