"""The operator's list of programs: what may be run, with which arguments, and what its exit codes prove."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
from checkpoint.planning.schema_faults import MUST_BE, REFUSED
from workers.tools import operator_lists
from workers.tools.http_arguments import Model, SecretName

SETTING = "CHECKPOINT_COMMANDS"
DEFAULT_FILE = "deploy/commands.toml"

_NONE = f"there is no command on the operator's list ({SETTING})"
KEY, GIVEN = "{key}", "{arguments}"

ExitCode = Annotated[int, Field(ge=0, le=255)]
_Text = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=4096)]
_Program = Annotated[str, Field(pattern=r"^/[^\x00]+$")]
_Variable = Annotated[str, Field(pattern=r"^(?!LD_|CHECKPOINT_)[A-Z_][A-Z0-9_]*$")]


class Check(Model):
    """How to find out whether the program did its work. Each list of exit codes is a promise."""

    program: _Program | None = None
    arguments: list[_Text]
    found_codes: list[ExitCode] = [0]
    absent_codes: Annotated[list[ExitCode], Field(min_length=1)]
    pending_codes: list[ExitCode] = []

    @model_validator(mode="after")
    def _one_meaning_each(self) -> Self:
        _disjoint(found=self.found_codes, absent=self.absent_codes, pending=self.pending_codes)
        return self


class Command(Model):
    """One entry of the file. All times are seconds.

    Attributes:
        program: absolute path of what is run.
        arguments: what it is called with; `{key}` anywhere in one stands for the step's key, an item `{arguments}` for
            those of the step.
        allowed_arguments: each argument of a step must match one of these regular expressions as a whole.
        environment, secrets: variables beside the few that every program gets; `secrets` names the secret of each.
        success_codes: exit codes that say that it did its work.
        not_applied_codes: exit codes that prove that it did nothing. Any other leaves the outcome unknown.
        check: how that is found out then; without one, a person is asked.
    """

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    program: _Program
    arguments: list[_Text] = [GIVEN]
    allowed_arguments: list[str] = []
    most_arguments: Annotated[int, Field(ge=0, le=100)] = 20
    environment: dict[_Variable, _Text] = {}
    secrets: dict[_Variable, SecretName] = {}
    success_codes: Annotated[list[ExitCode], Field(min_length=1)] = [0]
    not_applied_codes: list[ExitCode] = []
    check: Check | None = None
    deadline_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    settle_seconds: Annotated[float, Field(ge=0)] = 5.0
    where_to_look: Annotated[str, Field(min_length=1)]
    link: Annotated[str, Field(pattern=r"^(?:https?://[!-~]*)?$")] = ""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _disjoint(success=self.success_codes, not_applied=self.not_applied_codes)
        for pattern in self.allowed_arguments:
            try:
                re.compile(f"(?:{pattern})")
            except re.error as error:
                raise ValueError(f"allowed_arguments: {pattern!r} is no regular expression: {error}") from None
        return self

    def rules(self) -> dict[str, Any]:
        """The same as JSON Schema, so that a plan is refused where it is submitted."""
        words = f"what {self.name} allows, as a whole: {' or '.join(self.allowed_arguments)}"
        allowed = [{"pattern": f"^(?:{pattern})$(?!\\n)", MUST_BE: words} for pattern in self.allowed_arguments]
        items = {"anyOf": allowed, MUST_BE: words} if allowed else True
        most = self.most_arguments if allowed else 0
        return {
            "if": {"properties": {"command": {"const": self.name}}, "required": ["command"]},
            "then": {"properties": {"arguments": {"maxItems": most, "items": items}}},
        }

    def refusal(self, given: Sequence[str]) -> str:
        """Why these arguments are not allowed; empty where they are."""
        if len(given) > self.most_arguments:
            return f"{len(given)} arguments; {self.name} allows {self.most_arguments}"
        for argument in given:
            if not any(re.fullmatch(pattern, argument) for pattern in self.allowed_arguments):
                return f"the argument {argument[:100]!r} matches nothing that {self.name} allows"
        return ""

    def variant(self) -> Variant:
        """The contract of this program's runs."""
        recovery = RecoveryClass.QUERYABLE if self.check else RecoveryClass.OPAQUE
        contract = Contract(
            recovery,
            Reversibility.IRREVERSIBLE,
            deadline=self.deadline_seconds,
            settle=self.settle_seconds,
            can_inspect=self.check is not None,
            can_verify=self.check is not None,
            where_to_look=self.where_to_look,
            link=self.link,
            facts=("exit_code",),
        )
        when: dict[str, Any] = {"properties": {"command": {"const": self.name}}, "required": ["command"]}
        return Variant(f"{self.name}: {recovery.value}{', check' if self.check else ''}", contract, when)


def _disjoint(**lists: list[int]) -> None:
    seen: dict[int, str] = {}
    for name, codes in lists.items():
        for code in codes:
            if seen.setdefault(code, name) != name:
                raise ValueError(f"exit code {code} is in {seen[code]}_codes and in {name}_codes")


# A program that is on no list is refused before anything is started.
UNLISTED = Variant(
    name="unlisted",
    contract=Contract(
        RecoveryClass.OPAQUE,
        Reversibility.IRREVERSIBLE,
        where_to_look=f"Nowhere: this command is not on the list ({SETTING}), so nothing is ever started for it.",
    ),
)


class Commands:
    """The commands by name."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._by_name = {command.name: command for command in commands}

    def get(self, name: str) -> Command | None:
        """The command of that name, if it is on the list."""
        return self._by_name.get(name)

    def rules(self) -> list[dict[str, Any]]:
        """JSON Schemas that the arguments of a plan have to meet, all of them."""
        names: dict[str, Any] = {"enum": list(self._by_name)} if self._by_name else {"not": {}, REFUSED: _NONE}
        return [{"properties": {"command": names}}, *(command.rules() for command in self._by_name.values())]

    def variants(self) -> Sequence[Variant]:
        """The contracts of all of them; the first that matches counts."""
        return [*(command.variant() for command in self._by_name.values()), UNLISTED]


@lru_cache(maxsize=1)
def load() -> Commands:
    """The list of the file that CHECKPOINT_COMMANDS names, once per process.

    Raises:
        operator_lists.ListInvalid: the file cannot be used.
    """
    return Commands(operator_lists.read(Command, table="command", setting=SETTING, default=DEFAULT_FILE))
