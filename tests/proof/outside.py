"""The world outside of an exploration: whatever workers can reach, and who counts what really happened there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from approvals.models import Decision
from checkpoint.models import Step
from checkpoint.states import Decision as DecisionKind
from tests.proof.houses import Database, Files, House, Programs, Provider
from tests.proof.opened_houses import Events, Mail, Store
from tests.sandbox_driver import SandboxProcess
from tests.sql_driver import opened_shop
from workers.tools import command_list, email_accounts, http_providers, object_buckets, outbox_destinations
from workers.tools import sql_databases as databases

# Read once per process; explorations in one process have worlds of their own.
_LISTS = (command_list, email_accounts, http_providers, object_buckets, outbox_destinations, databases)


@dataclass
class Outside:
    """The houses, by what happens there."""

    provider: Provider
    files: Files
    programs: Programs
    mail: Mail
    store: Store
    database: Database
    events: Events

    @property
    def sandbox(self) -> SandboxProcess:
        """The provider's process."""
        return self.provider.sandbox

    def effects(self, step: Step) -> int:
        """How often the effect of a step exists."""
        match step.tool_version.name:
            case "human.task":
                return Decision.objects.filter(case__step=step, kind=DecisionKind.ANSWER).count()
            case "wait.until":
                return 0
            case tool:
                return self._house(tool).effects(step)

    def houses(self) -> list[House]:
        """All of them."""
        return [self.provider, self.files, self.programs, self.mail, self.store, self.database, self.events]

    def _house(self, tool: str) -> House:
        by_family: dict[str, House] = {
            "http": self.provider, "file": self.files, "command": self.programs, "email": self.mail,
            "object": self.store, "sql": self.database, "outbox": self.events,
        }  # fmt: skip
        return by_family[tool.partition(".")[0]]


@contextmanager
def outside_world(folder: Path, superuser_url: str) -> Iterator[Outside]:
    """A world of its own; workers that are forked from here find it."""
    before = dict(os.environ)
    with ExitStack() as opened:
        sandbox = SandboxProcess(folder / "ledger.jsonl")
        opened.callback(sandbox.stop)
        outside = Outside(
            Provider(folder, sandbox),
            Files(folder / "files"),
            Programs(folder),
            Mail(folder, opened),
            Store(folder, opened),
            Database(folder, opened.enter_context(opened_shop(superuser_url))),
            Events(folder, opened),
        )
        for house in outside.houses():
            os.environ.update(house.environment())
        _forget_lists()
        try:
            yield outside
        finally:
            os.environ.clear()
            os.environ.update(before)
            _forget_lists()


def _forget_lists() -> None:
    for module in _LISTS:
        module.load.cache_clear()
