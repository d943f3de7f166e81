"""`manage.py submit`: a workflow from a file, all or nothing."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from checkpoint import command_line
from checkpoint.command_line import ClearCommand
from checkpoint.errors import SubmissionInvalid
from checkpoint.explaining import waiting
from checkpoint.management.files import document_in, refuse
from checkpoint.models import Team, Workflow
from checkpoint.planning.plans import Plan, parse_plan
from checkpoint.short_ids import short
from checkpoint.states import WorkflowStatus
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit

ENDINGS = {
    WorkflowStatus.COMPLETED: 0,
    WorkflowStatus.NEEDS_REVIEW: 3,
    WorkflowStatus.AWAITING_APPROVAL: 3,
    WorkflowStatus.AWAITING_AGENT: 4,
    WorkflowStatus.ABANDONED: 5,
}
TIME_IS_OVER = 6


class Command(ClearCommand):
    """Reads, checks, stores; with --wait it follows the workflow until it ends or somebody has to act."""

    help = (
        "Submit a workflow from a JSON or YAML file. Exit codes: 0 submitted (with --wait: completed), "
        "2 faults in the file, nothing stored; with --wait also 3 a person is asked, 4 the agent's turn, "
        "5 abandoned, 6 the time is over; 1 any other error."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the file, or - for standard input")
        parser.add_argument("--team", help="slug of the team that owns the workflow")
        parser.add_argument("--as", dest="user", metavar="USER", help="submit as this user, with that user's rights")
        parser.add_argument(
            "--wait",
            nargs="?",
            type=command_line.seconds,
            const=float("inf"),
            metavar="SECONDS",
            help="follow it; for ever, or so long",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object on standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        team = _team(options["team"], user)
        try:
            plan = _plan(options["file"], team)
        except SubmissionInvalid as error:
            self._refuse(error, options)
        with command_line.clear_errors():
            workflow = submit(plan, team=team, actor=command_line.actor(user), user=user)
        self._say(options, f"Submitted {workflow.pk} ({len(plan.steps)} steps) for team {team.slug}.")
        code = self._wait(workflow, options) if options["wait"] is not None else 0
        if options["json"]:
            workflow.refresh_from_db()
            answer = {"id": str(workflow.pk), "status": workflow.status, "team": team.slug, "steps": len(plan.steps)}
            self.stdout.write(json.dumps(answer))
        if code:
            sys.exit(code)

    def _refuse(self, error: SubmissionInvalid, options: dict[str, Any]) -> None:
        refusal = refuse(self, error)
        if options["json"]:
            faults = [{"path": fault.path, "message": fault.message} for fault in error.faults]
            self.stdout.write(json.dumps({"code": error.code, "faults": faults}))
        raise refusal

    def _wait(self, workflow: Workflow, options: dict[str, Any]) -> int:
        for change in waiting.follow(workflow.pk, seconds=options["wait"], until=ENDINGS):
            self._say(options, change.line)
            if change.status is not None:
                return ENDINGS[change.status]
        self.stderr.write(
            f"Not at its end after {options['wait']:g} s; `manage.py explain {short(workflow.pk)}` says why."
        )
        return TIME_IS_OVER

    def _say(self, options: dict[str, Any], line: str) -> None:
        """With --json standard output is for the one object."""
        (self.stderr if options["json"] else self.stdout).write(line)


def _plan(file: str, team: Team) -> Plan:
    return parse_plan(document_in(file), newest_tools(team))


def _team(slug: str | None, user: User | None) -> Team:
    """The team that is named, else the only one that the user belongs to, else the default one."""
    if slug is None and user is not None and user.teams.count() == 1:
        return user.teams.get()
    found = Team.objects.filter(slug=slug or "default").first()
    if found is None:
        known = ", ".join(Team.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise CommandError(f"There is no team {slug or 'default'!r}; there are: {known}.")
    return found
