"""What the explorer explores: a workflow of every recovery class, of the tools that ship, and how its effects count."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from checkpoint.models import Step
from tests import effects
from tests.sandbox_driver import SandboxProcess

WANTED = "what was wanted"


@dataclass
class Outside:
    """The sandbox provider and the workers' folder, read from outside."""

    sandbox: SandboxProcess
    files: Path
    _counts: Counter[str | None] = field(default_factory=Counter)
    _read_to: int = 0
    _written: dict[str, set[int]] = field(default_factory=dict)

    def effects(self, step: Step) -> int:
        """How often the effect of a step exists."""
        return len(self._files_seen(step)) if step.tool_version.name == "file.write" else self._requests(step)

    def _requests(self, step: Step) -> int:
        """From the ledger's own file, each line of it once."""
        with self.sandbox.ledger_file.open("rb") as ledger:
            ledger.seek(self._read_to)
            for line in ledger:
                record = orjson.loads(line)
                self._counts[record["key"] if record["record"] == "effect" else None] += 1
            self._read_to = ledger.tell()
        return self._counts[step.idempotency_key]

    def _files_seen(self, step: Step) -> set[int]:
        """Each file that ever had the wanted content at this path: a second write is another file."""
        file = self.files / file_of(step)
        seen = self._written.setdefault(step.idempotency_key, set())
        if file.exists() and file.read_text() == WANTED:
            seen.add(file.stat().st_ino)
        return seen


@contextmanager
def outside_world(folder: Path) -> Iterator[Outside]:
    """A sandbox provider of its own, and a folder; workers that are forked from here find both."""
    sandbox = SandboxProcess(folder / "ledger.jsonl")
    providers = folder / "providers.toml"
    providers.write_text(sandbox.providers_toml())
    outside = Outside(sandbox, folder / "files")
    found = {"CHECKPOINT_HTTP_PROVIDERS": str(providers), "CHECKPOINT_FILES_ROOT": str(outside.files)}
    before = {name: os.environ.get(name) for name in found}
    os.environ.update(found)
    try:
        yield outside
    finally:
        sandbox.stop()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def file_of(step: Step) -> str:
    """The path that a step of file.write writes to."""
    return str(orjson.loads(step.arguments or step.template)["path"])


Steps = Callable[[Outside, str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Subject:
    """One workflow to explore.

    Attributes:
        steps: makes its steps, for a run with a name of its own.
        opaque: a call of it that is cut in mid-air can become a question.
    """

    name: str
    steps: Steps
    opaque: bool = False


def _http(kind: effects.EffectKind) -> Steps:
    return lambda outside, run: [kind.step(outside.sandbox)]


def _read(outside: Outside, run: str) -> list[dict[str, Any]]:
    arguments = {"method": "GET", "url": f"{outside.sandbox.url}/tickets?reference={run}"}
    return [{"name": "read", "tool": "http.request", "arguments": arguments}]


def _write(outside: Outside, run: str) -> dict[str, Any]:
    return {"name": "write", "tool": "file.write", "arguments": {"path": f"{run}.txt", "content": WANTED}}


def _new_file(outside: Outside, run: str) -> list[dict[str, Any]]:
    step = _write(outside, run)
    return [{**step, "arguments": {**step["arguments"], "mode": "if_absent"}}]


def _overwritten_file(outside: Outside, run: str) -> list[dict[str, Any]]:
    outside.files.mkdir(parents=True, exist_ok=True)
    (outside.files / f"{run}.txt").write_text("what was there before")
    return [_write(outside, run)]


def _in_sequence(outside: Outside, run: str) -> list[dict[str, Any]]:
    return [effects.OPAQUE.step(outside.sandbox), effects.QUERYABLE.step(outside.sandbox)]


SUBJECTS = (
    Subject("read_only", _read),
    Subject("idempotent", _http(effects.KEYED)),
    Subject("idempotent_with_lookup", _http(effects.KEYED_LOOKED_UP)),
    Subject("queryable", _http(effects.QUERYABLE)),
    Subject("opaque", _http(effects.OPAQUE), opaque=True),
    Subject("file_new", _new_file),
    Subject("file_overwritten", _overwritten_file),
    Subject("sequence", _in_sequence, opaque=True),
)
