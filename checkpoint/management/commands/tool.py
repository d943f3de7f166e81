"""`manage.py tool`: what agents carry out themselves."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from checkpoint import command_line
from checkpoint.agents import agent_tools
from checkpoint.command_line import ClearCommand
from checkpoint.errors import SubmissionInvalid
from checkpoint.management.files import document_in, refuse
from checkpoint.models import Team


class Command(ClearCommand):
    """Registers a contract; the same again changes nothing."""

    help = (
        "Register a tool that the agents of a team carry out themselves, from a JSON or YAML file. "
        "Exit codes: 0 in force, 2 faults in the file, nothing stored; 1 any other error."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        register = actions.add_parser("register", help="put a contract in force")
        register.add_argument("file", help="the file, or - for standard input")
        register.add_argument("--team", default="default", help="slug of the team whose agents carry it out; default")
        register.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        team = Team.objects.filter(slug=options["team"]).first()
        if team is None:
            raise CommandError(f"There is no team {options['team']!r}.")
        with command_line.clear_errors():
            try:
                document = document_in(options["file"])
                tool = agent_tools.register(document, team=team, actor=command_line.actor(user), user=user)
            except SubmissionInvalid as error:
                raise refuse(self, error) from error
        self.stdout.write(f"In force: {tool}, for the agents of team {team.slug}.")
