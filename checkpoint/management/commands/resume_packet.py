"""`manage.py resume_packet`: what a workflow's agent is given when it starts again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from checkpoint import command_line, resume_packets
from checkpoint.command_line import ClearCommand
from checkpoint.models import Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.resume_packets import DEFAULT_BUDGET
from checkpoint.short_ids import find


class Command(ClearCommand):
    """Issues the packet and prints it."""

    help = "Print a workflow's resume packet, as canonical JSON, and keep it. Exit codes: 0 printed, 1 refused."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET, help="bytes at most (%(default)s)")
        parser.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        with command_line.clear_errors():
            visible = workflows_visible_to(user) if user else Workflow.objects.all()
            found = find(visible.defer("input"), options["workflow"], noun="workflow")
            packet = resume_packets.issue(found.pk, actor=command_line.actor(user), user=user, budget=options["budget"])
        self.stdout.write(packet.text)
