"""Where the effects of an exploration happen: a provider, a folder, programs, a database, each with its own ledger.

`opened_houses` has those whose servers start only when they are needed.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from checkpoint.models import Step
from tests.sandbox_driver import SandboxProcess
from tests.sql_driver import Shop

WANTED, BEFORE = "what was wanted", "what was there before"


class House(Protocol):
    """Where the effects of some tools happen."""

    def environment(self) -> dict[str, str]:
        """What a worker needs to find it."""

    def effects(self, step: Step) -> int:
        """How often the effect of a step exists, by the house's own ledger."""


def arguments_of(step: Step) -> dict[str, Any]:
    """The arguments as they are sent."""
    found: dict[str, Any] = orjson.loads(step.arguments or step.template)
    return found


def listed(file: Path, table: str, *entries: dict[str, Any]) -> str:
    """An operator's list; returns its path."""
    blocks = [
        "\n".join([f"[[{table}]]", *(f"{name} = {_toml(one)}" for name, one in each.items())]) for each in entries
    ]
    file.write_text("\n\n".join(blocks))
    return str(file)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_toml(one)}' for name, one in value.items())} }}"
    return json.dumps(value)


@dataclass
class Provider:
    """`http.request`: the sandbox provider."""

    folder: Path
    sandbox: SandboxProcess
    _counts: Counter[str | None] = field(default_factory=Counter)
    _read_to: int = 0

    def environment(self) -> dict[str, str]:
        """The providers that ship."""
        file = self.folder / "providers.toml"
        file.write_text(self.sandbox.providers_toml())
        return {"CHECKPOINT_HTTP_PROVIDERS": str(file)}

    def effects(self, step: Step) -> int:
        """From the ledger's own file, each line of it once."""
        with self.sandbox.ledger_file.open("rb") as ledger:
            ledger.seek(self._read_to)
            for line in ledger:
                record = orjson.loads(line)
                self._counts[record["key"] if record["record"] == "effect" else None] += 1
            self._read_to = ledger.tell()
        return self._counts[step.idempotency_key]


@dataclass
class Files:
    """`file.write` and `file.delete`: the workers' folder."""

    root: Path
    _seen: dict[str, set[int]] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Where it is."""
        return {"CHECKPOINT_FILES_ROOT": str(self.root)}

    def effects(self, step: Step) -> int:
        """A file that is gone, or each file that ever had the wanted content: a second write is another file."""
        file = self.root / str(arguments_of(step)["path"])
        if step.tool_version.name == "file.delete":
            return int(not file.exists())
        seen = self._seen.setdefault(step.idempotency_key, set())
        if file.exists() and file.read_text() == WANTED:
            seen.add(file.stat().st_ino)
        return len(seen)

    def put(self, name: str) -> None:
        """What was there before."""
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(BEFORE)


@dataclass
class Programs:
    """`command.run`: a program that writes the key into a ledger, once as `unchecked` and once as `checked`."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """The list that allows it."""
        common = {"program": "/bin/sh", "where_to_look": "Look into the ledger.", "settle_seconds": 0.2}
        note = ["-c", f"echo {{key}} >> {self._ledger}"]
        check = {"arguments": ["-c", f"grep -qx {{key}} {self._ledger}"], "absent_codes": [1, 2]}
        unchecked = {"name": "unchecked", "arguments": note, **common}
        checked = {"name": "checked", "arguments": note, "check": check, **common}
        return {"CHECKPOINT_COMMANDS": listed(self.folder / "commands.toml", "command", unchecked, checked)}

    def effects(self, step: Step) -> int:
        """Its lines in the ledger."""
        return self._ledger.read_text().split().count(step.idempotency_key) if self._ledger.exists() else 0

    @property
    def _ledger(self) -> Path:
        return self.folder / "commands.ledger"


@dataclass
class Database:
    """`sql.execute`: a shop that sells chairs."""

    folder: Path
    shop: Shop
    pieces: int = 10

    def environment(self) -> dict[str, str]:
        """The database's entry."""
        return self.shop.environment(self.folder)

    def stock(self, article: str) -> None:
        """An article of its own for each run."""
        self.shop.sql("INSERT INTO stock VALUES (%s, %s)", article, self.pieces)

    def effects(self, step: Step) -> int:
        """How many were taken."""
        return self.pieces - self.shop.pieces(str(arguments_of(step)["parameters"][0]))
