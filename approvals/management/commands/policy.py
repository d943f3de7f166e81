"""`manage.py policy`: reads policies, compares them with the one in force, tries them, and puts one in force."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from approvals.policies import PolicyDocument
from approvals.rules import policy_versions
from approvals.rules.policy_checks import warnings
from approvals.rules.policy_documents import LARGEST_POLICY
from approvals.rules.policy_errors import PolicyInvalid
from approvals.rules.policy_previews import Change, JudgedStep, Preview, Trial, preview, trial
from approvals.rules.policy_summaries import ToolChange, tool_changes, unified
from approvals.rules.policy_words import approval_in_words
from checkpoint import command_line
from checkpoint.command_line import ClearCommand, printable
from checkpoint.errors import Conflict
from checkpoint.models import PolicyVersion, Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find, short
from checkpoint.tool_versions import newest_tools

INVALID = 2
NOT_ACTIVATED = 3


class Command(ClearCommand):
    """One verb for each thing one does with a policy."""

    help = (
        "Policies. Exit codes: 0 done, 2 faults in the file, 3 not activated (nobody said yes, another version came "
        "in between, or nothing would change), 1 any other error."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for name, words in _WITH_FILE.items():
            verbs.add_parser(name, help=words).add_argument("file", help="the policy as YAML, or - for standard input")
        activate, attempt = verbs.choices["activate"], verbs.choices["try"]
        activate.add_argument("--reason", required=True, help="why; kept with the version and in the audit trail")
        activate.add_argument("--yes", action="store_true", help="go on after the open work was shown, without asking")
        attempt.add_argument("--workflow", required=True, metavar="ID", help="UUID, or its last 8 or more digits")
        for verb in (activate, attempt):
            verb.add_argument("--as", dest="user", metavar="USER", help="as this user, with that user's rights")
        show = verbs.add_parser("show", help="the version in force, or another one")
        show.add_argument("number", nargs="?", type=int, help="the version's number")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "show":
            self._show(options["number"])
            return
        text = policy_versions.in_one_spelling(_read(options["file"]))
        try:
            document = policy_versions.check(text)
        except PolicyInvalid as invalid:
            self._refuse(invalid)
        verb = {"check": self._check, "diff": self._diff, "activate": self._activate, "try": self._try}
        verb[options["verb"]](text, document, options)

    def _refuse(self, invalid: PolicyInvalid) -> None:
        for fault in invalid.faults:
            self.stderr.write(printable(str(fault)))
        count = len(invalid.faults)
        raise CommandError(f"{count} fault{'s' if count > 1 else ''} in the policy.", returncode=INVALID)

    def _check(self, text: str, document: PolicyDocument, options: dict[str, Any]) -> None:
        self._say(f"No faults; {len(document.rules)} rules.")
        self._say(*(f"Warning: {warning}" for warning in warnings(document)))

    def _diff(self, text: str, document: PolicyDocument, options: dict[str, Any]) -> None:
        self._say_difference(text, document, policy_versions.in_force())

    def _activate(self, text: str, document: PolicyDocument, options: dict[str, Any]) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        current = policy_versions.in_force()
        if policy_versions.is_text_of(text, current):
            self._say(f"It is active already, as version {current.number}; nothing was changed.")
            return
        self._say_difference(text, document, current)
        workflows = workflows_visible_to(user) if user else Workflow.objects.all()
        self._say(*_preview_lines(preview(policy_versions.document_of(current.pk), document, workflows)))
        self._say(*(f"Warning: {warning}" for warning in warnings(document)))
        if not options["yes"] and not _confirmed():
            raise CommandError("Not activated. Add --yes to go on.", returncode=NOT_ACTIVATED)
        with command_line.clear_errors(), command_line.clear_errors(NOT_ACTIVATED, only=Conflict):
            stored = policy_versions.activate(
                text=text,
                actor=command_line.actor(user),
                user=user,
                reason=options["reason"],
                seen=current.number,
            )
        self._say(f"Version {stored.number} is in force.")

    def _try(self, text: str, document: PolicyDocument, options: dict[str, Any]) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        workflows = workflows_visible_to(user) if user else Workflow.objects.all()
        with command_line.clear_errors():
            workflow = find(workflows.defer("input"), options["workflow"], noun="workflow")
        self._say(*_trial_lines(trial(document, workflow)))

    def _show(self, number: int | None) -> None:
        with command_line.clear_errors():
            stored = policy_versions.version(number) if number is not None else policy_versions.in_force()
        self._say(f"# version {stored.number}, {stored.created_at:%Y-%m-%d %H:%M:%S} UTC, by {stored.author}")
        self._say(f"# {stored.reason}", f"# sha256 {stored.sha256}")
        self._say(*policy_versions.text_of(stored).splitlines())

    def _say_difference(self, text: str, document: PolicyDocument, current: PolicyVersion) -> None:
        old = policy_versions.text_of(current)
        self._say(*unified(old, text, old_name=f"version {current.number}, in force", new_name="this policy"))
        before = policy_versions.document_of(current.pk)
        self._say(*_tool_lines(tool_changes(before, document, newest_tools().values())))

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.stdout.write(printable(line))


_WITH_FILE = {
    "check": "report every fault, and what is probably not meant",
    "diff": "compare with the version in force",
    "activate": "put in force, after showing which open work changes",
    "try": "say what would happen to each step of a workflow, and why",
}


def _read(file: str) -> str:
    """No more than what is needed to see that it is too large: a character has up to four bytes."""
    most = LARGEST_POLICY * 4 + 1
    try:
        if file == "-":
            return sys.stdin.buffer.read(most).decode()
        with Path(file).open("rb") as stream:
            return stream.read(most).decode()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.", returncode=INVALID) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not UTF-8: byte {error.start}.", returncode=INVALID) from error


def _confirmed() -> bool:
    return sys.stdin.isatty() and input("Put this policy in force? [y/N] ").lower() == "y"


def _tool_lines(changes: list[ToolChange]) -> Iterator[str]:
    if not changes:
        yield "For no tool does anything change."
    for change in changes:
        yield f"{', '.join(change.tools)}:"
        yield from (f"  no longer: {line}" for line in change.removed)
        yield from (f"  new: {line}" for line in change.added)
        if not change.removed and not change.added:
            yield "  the same rules, in another order"


def _preview_lines(found: Preview) -> Iterator[str]:
    looked_at = f"{found.looked_at} open steps" if found.complete else f"the newest {found.looked_at} open steps"
    yield f"Of {looked_at}, {found.steps} in {found.workflows} workflows would be ruled differently."
    for change in found.changes:
        yield f"  {change.tool}, {change.steps} steps of {_named(change)}:"
        yield from (f"    {difference}" for difference in change.differences)


def _named(change: Change) -> str:
    more = len(change.workflows) - len(change.shown)
    shown = ", ".join(f"…{short(workflow)}" for workflow in change.shown)
    return f"{shown} and {more} more workflows" if more else shown


def _trial_lines(found: Trial) -> Iterator[str]:
    if found.approval is not None:
        yield f"The plan: {approval_in_words(found.approval)}."
    for step in found.steps:
        yield from _step_lines(step)


def _step_lines(step: JudgedStep) -> Iterator[str]:
    described = f"{step.description.tool}, {step.description.reversibility}".replace("_", " ")
    yield f"{step.position}. {step.name} ({described}): {approval_in_words(step.ruling.approval)}"
    if step.ruling.limits.in_flight is not None:
        yield f"   at most {step.ruling.limits.in_flight} in flight"
    if step.ruling.limits.starts_per_minute is not None:
        yield f"   at most {step.ruling.limits.starts_per_minute:g} starts of its tool a minute"
    if step.ruling.limits.in_flight_per_workflow is not None:
        yield f"   at most {step.ruling.limits.in_flight_per_workflow} of its workflow in flight"
    if step.ruling.step_up:
        yield "   whoever decides must authenticate again"
    yield from (f"   {reason}" for reason in step.ruling.reasons)
