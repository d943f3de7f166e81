"""`manage.py publish_tools`: what a worker does at its start, without a worker."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from checkpoint.command_line import ClearCommand
from workers.publishing import publish
from workers.registry import discover


class Command(ClearCommand):
    """Publishes every tool that this installation's code has."""

    help = "Publish the tools of this code, so that plans can use them. Running it again changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        tools = discover()
        try:
            new = publish(tools.values())
        except ValueError as error:
            raise CommandError(str(error)) from error
        for tool_version in new:
            self.stdout.write(f"Published {tool_version}.")
        self.stdout.write(f"{len(tools)} tools, {len(new)} of them new.")
