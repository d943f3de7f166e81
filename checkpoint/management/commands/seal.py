"""`manage.py seal`: a plan is whole."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from checkpoint import appending, command_line
from checkpoint.command_line import ClearCommand
from checkpoint.models import Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find


class Command(ClearCommand):
    """Closes it; sealing what is sealed changes nothing."""

    help = (
        "Seal a plan: its agent appends nothing more, and once every step is verified the workflow is completed. "
        "Exit codes: 0 sealed, 1 refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("--reason", required=True, help="why; kept in the audit trail")
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        with command_line.clear_errors():
            visible = workflows_visible_to(user) if user else Workflow.objects.all()
            found = find(visible, options["workflow"], noun="workflow")
            sealed = appending.seal(
                workflow_id=found.pk, reason=options["reason"], actor=command_line.actor(user), user=user
            )
        self.stdout.write(f"Sealed; the workflow is {sealed.workflow.status}.")
