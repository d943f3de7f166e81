"""`manage.py resume`: says with which version of its prompt a workflow's agent goes on."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from checkpoint import command_line, resuming
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict
from checkpoint.models import Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find

MOVED_ON = 3


class Command(ClearCommand):
    """Records the agent's prompt; the policy says what a change of it does."""

    help = (
        "Record that a workflow's agent goes on with a version of its prompt. Exit codes: 0 recorded, 3 the workflow "
        "has ended or is being wound down, 1 any other refusal."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("--prompt-version", required=True, help="the version of the prompt, such as refund/4")
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        with command_line.clear_errors(), command_line.clear_errors(MOVED_ON, only=Conflict):
            visible = workflows_visible_to(user) if user else Workflow.objects.all()
            found = find(visible, options["workflow"], noun="workflow")
            now = resuming.resume(
                workflow_id=found.pk,
                prompt_version=options["prompt_version"],
                actor=command_line.actor(user),
                user=user,
            )
        if now.resumed_prompt in (None, now.prompt_version):
            self.stdout.write(f"The agent goes on with {printable(now.prompt_version)}, with which it was planned.")
        else:
            self.stdout.write(
                f"The agent goes on with {printable(now.resumed_prompt)}; the plan was made with "
                f"{printable(now.prompt_version) or 'a prompt without a name'}. The policy says what that does."
            )
