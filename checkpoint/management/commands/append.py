"""`manage.py append`: more steps for a plan that is not sealed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from checkpoint import appending, command_line
from checkpoint.command_line import ClearCommand
from checkpoint.errors import SubmissionInvalid
from checkpoint.management.files import document_in, refuse
from checkpoint.models import Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find
from checkpoint.tool_versions import newest_tools


class Command(ClearCommand):
    """Reads, checks, stores; all or nothing."""

    help = (
        "Append steps to a plan that is not sealed, from a JSON or YAML file with `steps` and perhaps `sealed: true`. "
        "Exit codes: 0 appended, 2 faults in the file, nothing stored; 1 any other error."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("file", help="the file, or - for standard input")
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        with command_line.clear_errors():
            visible = workflows_visible_to(user) if user else Workflow.objects.all()
            found = find(visible, options["workflow"], noun="workflow")
        with command_line.clear_errors():
            try:
                appended = appending.append(
                    workflow_id=found.pk,
                    document=document_in(options["file"]),
                    tools=newest_tools(found.team),
                    actor=command_line.actor(user),
                    user=user,
                )
            except SubmissionInvalid as error:
                raise refuse(self, error) from error
        self.stdout.write(f"Appended {len(appended.steps)} steps; the workflow is {appended.workflow.status}.")
