"""`command.run`: runs a program on the operator's list, with arguments that its rules allow, never through a shell."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from django.conf import settings
from pydantic import Field

from checkpoint.contracts import Variant
from checkpoint.crash_points import reach
from checkpoint.outcomes import (
    Absent,
    Facts,
    Found,
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Pending,
    Receipt,
    Unanswered,
    Verification,
    Visible,
)
from workers.registry import Call
from workers.tools import command_list, command_output, command_process
from workers.tools.command_list import GIVEN, KEY, SETTING, Check, Command, Commands
from workers.tools.command_process import Ended, Interrupted
from workers.tools.http_arguments import Model
from workers.tools.secrets import Secrets

_NAME_WORDS = "a command's name: a-z, then a-z, 0-9 and -"
_ARGUMENT_WORDS = "text without NUL, at most 4096 characters"
_PATH = "/usr/local/bin:/usr/bin:/bin"

Argument = Annotated[
    str, Field(pattern=r"^[^\x00]*$(?!\n)", max_length=4096, json_schema_extra={"x-must-be": _ARGUMENT_WORDS})
]


class CommandArguments(Model):
    """Which command of the operator's list, and the arguments that it gets, each as it stands here."""

    command: Annotated[
        str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$(?!\n)", json_schema_extra={"x-must-be": _NAME_WORDS})
    ]
    arguments: Annotated[list[Argument], Field(max_length=100)] = []


class OutcomeUnknown(Unanswered):
    """The program was started, and nothing declared says what it did."""


class CommandRun:
    """One instance serves all calls and keeps nothing between them."""

    name = "command.run"
    version = "1"
    summary = "Runs an allowed program"
    Arguments = CommandArguments
    reports_sending = True

    def __init__(self, commands: Commands | None = None, secrets: Secrets | None = None) -> None:
        self._given = commands
        self._secrets = secrets or Secrets()

    def variants(self) -> Sequence[Variant]:
        """What each command on the list can be relied on for."""
        return self._commands().variants()

    def argument_rules(self) -> Sequence[dict[str, Any]]:
        """What the operator's list allows, for plans; before a program is started, it is asked again."""
        return self._commands().rules()

    def execute(self, arguments: CommandArguments, call: Call) -> Receipt:
        """Runs the program.

        Raises:
            NotApplied: it was not started, or ended with a code that is declared to prove that nothing happened.
            OutcomeUnknown: it ended in any other way.
        """
        command = self._command(arguments)
        program = [command.program, *_filled(command.arguments, arguments.arguments, call.key)]

        def answered(ended: Ended) -> None:
            reach("command.run/ended", call.step_name)
            if ended.exit_code in command.success_codes:
                call.answered(Receipt(facts=self._facts(ended)))

        try:
            ended = self._run(command, program, call, sending=call.sending, ended=answered)
        except Interrupted as error:
            raise OutcomeUnknown(f"{command.name} was started, and {error}") from None
        facts = self._kept(ended, call)
        if ended.exit_code in command.success_codes:
            return Receipt(facts=facts)
        raise self._failure(command, ended)

    def inspect(self, arguments: CommandArguments, call: Call) -> Inspection:
        """Runs the command's check and reads its exit code."""
        try:
            command = self._command(arguments)
            if command.check is None:
                return Inconclusive(f"{command.name} has no check")
            return self._checked(command, command.check, arguments, call)
        except (NotApplied, Interrupted, OSError) as error:
            return Inconclusive(f"the check failed: {self._secrets.redact(str(error))}")

    def verify(self, arguments: CommandArguments, call: Call) -> Verification:
        """Runs the command's check."""
        match self.inspect(arguments, call):
            case Found(receipt):
                return Visible(receipt.facts)
            case Inconclusive(message):
                return NotVisible(message)
            case Absent(facts) | Pending(facts):
                return NotVisible("the check does not find it", facts)

    def _commands(self) -> Commands:
        return self._given or command_list.load()

    def _command(self, arguments: CommandArguments) -> Command:
        command = self._commands().get(arguments.command)
        if command is None:
            message = f"nothing was started: there is no command {arguments.command} on the operator's list ({SETTING})"
            raise NotApplied(message, code="not_allowed", permanent=True)
        if why := command.refusal(arguments.arguments):
            raise NotApplied(f"nothing was started: {why}", code="argument_refused", permanent=True)
        return command

    def _checked(self, command: Command, check: Check, arguments: CommandArguments, call: Call) -> Inspection:
        filled = _filled(check.arguments, arguments.arguments, call.key)
        ended = self._run(command, [check.program or command.program, *filled], call)
        facts = self._facts(ended)
        if ended.exit_code in check.found_codes:
            return Found(Receipt(facts=facts))
        if ended.exit_code in check.absent_codes:
            return Absent(facts)
        if ended.exit_code in check.pending_codes:
            return Pending(facts)
        return Inconclusive(f"the check {self._said(ended)}, which is declared to mean nothing")

    def _run(
        self,
        command: Command,
        program: list[str],
        call: Call,
        sending: Callable[[], None] = lambda: None,
        ended: Callable[[Ended], None] = lambda _: None,
    ) -> Ended:
        with _private_folder() as folder:
            return command_process.run(
                program,
                environment=self._environment(command, folder, call.key),
                folder=folder,
                deadline=call.deadline,
                sending=sending,
                ended=ended,
            )

    def _environment(self, command: Command, folder: Path, key: str) -> dict[str, str]:
        """Nothing of the worker's own: that holds its database's password and every secret."""
        secrets = {name: self._secrets.value(secret) for name, secret in command.secrets.items()}
        usual = {"PATH": _PATH, "LANG": "C.UTF-8", "HOME": str(folder), "TMPDIR": str(folder)}
        return {**usual, **command.environment, **secrets, "CHECKPOINT_KEY": key}

    def _failure(self, command: Command, ended: Ended) -> Exception:
        said = f"{command.name} {self._said(ended)}"
        if ended.exit_code in command.not_applied_codes:
            return NotApplied(f"{said}, by which it did nothing", code=f"exit_{ended.exit_code}")
        return OutcomeUnknown(f"{said}. This code is not declared to prove anything")

    def _said(self, ended: Ended) -> str:
        text = " ".join(ended.stderr.head(self._secrets.redact).split())[:200]
        return f"ended with exit code {ended.exit_code}" + (f": {text}" if text else "")

    def _facts(self, ended: Ended) -> Facts:
        redact = self._secrets.redact
        return {
            "exit_code": ended.exit_code,
            "stdout": ended.stdout.to_json(redact),
            "stderr": ended.stderr.to_json(redact),
        }

    def _kept(self, ended: Ended, call: Call) -> Facts:
        """The facts, with what was printed kept as artifacts: after a failure too, for the person who looks into it."""
        facts = self._facts(ended)
        for name, stream in (("stdout", ended.stdout), ("stderr", ended.stderr)):
            facts[name] |= command_output.keep(name, stream, call, self._secrets.redact)
        return facts


def _filled(template: Sequence[str], given: Sequence[str], key: str) -> list[str]:
    filled: list[str] = []
    for item in template:
        filled += given if item == GIVEN else [item.replace(KEY, key)]
    return filled


@contextmanager
def _private_folder() -> Iterator[Path]:
    """An empty folder that only this user can read; it goes with the run."""
    parent = settings.CHECKPOINT_HOME / "commands"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
