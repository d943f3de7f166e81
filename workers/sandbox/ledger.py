"""The sandbox's memory: an append-only file of JSON lines, and the state that is read from it."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Effect:
    """One thing that happened.

    Attributes:
        key: the Idempotency-Key that came with the request, whether or not this provider honours it.
        reference: the caller's own reference, by which some providers can be asked.
        at: Unix time, seconds.
        visible_from: Unix time from which reads by number show it; None means hidden until revealed.
        listed_from: the same for lookups by key or reference.
    """

    kind: str
    number: str
    key: str | None
    reference: str | None
    body: Body
    at: float
    visible_from: float | None = 0.0
    listed_from: float | None = 0.0


@dataclass(frozen=True)
class Remembered:
    """What a key stands for at a provider that honours keys: one body, one answer."""

    digest: str
    status: int
    number: str | None


class Ledger:
    """Every change is one record: appended to the file first, then applied to the state, under one lock."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._effects: list[Effect] = []
        self._index: defaultdict[tuple[str, str, str | None], list[int]] = defaultdict(list)
        self._counts: Counter[str] = Counter()
        self._remembered: dict[tuple[str, str | None], Remembered] = {}
        self._magic_done: set[tuple[str, str]] = set()
        self._revealed = 0
        for record in _read(path):
            self._apply(record)
        self._file = _open_for_append(path)

    def add(self, prefix: str, kind: str, **fields: Any) -> Effect:
        """Writes an effect with the next number of its kind, before anybody is told of it."""
        with self._lock:
            number = f"{prefix}-{self._counts[kind] + 1:06d}"
            effect = Effect(kind=kind, number=number, at=time.time(), **fields)
            self._append({"record": "effect", **asdict(effect)})
            return effect

    def cache_failure(self, kind: str, key: str, body: Body, status: int) -> None:
        """Fixes a failure as the answer that this key gets from now on."""
        remembered = Remembered(digest(body), status, None)
        self._append({"record": "cached_failure", "kind": kind, "key": key, **asdict(remembered)})

    def remembered(self, kind: str, key: str) -> Remembered | None:
        """The answer that this key stands for, if it was ever used."""
        return self._remembered.get((kind, key))

    def first_magic(self, key: str, fault: str) -> bool:
        """True once per key and fault: magic in a body strikes the first send only, even over restarts."""
        with self._lock:
            if (key, fault) in self._magic_done:
                return False
            self._append({"record": "magic", "key": key, "fault": fault})
            return True

    def reveal(self) -> None:
        """Shows everything that was hidden until now."""
        self._append({"record": "reveal"})

    def forget_keys(self) -> None:
        """Plays the end of the provider's key lifetime: every key is new again."""
        self._append({"record": "forget_keys"})

    def effects(self) -> list[Effect]:
        """Everything that happened, in order, hidden or not."""
        with self._lock:
            return list(self._effects)

    def effect(self, kind: str, number: str) -> Effect:
        """The effect of that number, hidden or not."""
        with self._lock:
            return self._effects[self._index[kind, "number", number][0]]

    def visible(self, kind: str, number: str) -> Effect | None:
        """What a read by number shows."""
        return next(iter(self._shown(kind, "number", number, "visible_from")), None)

    def listed(self, kind: str, field: str, value: str) -> list[Effect]:
        """What a lookup by `key` or `reference` shows; it may lag behind."""
        return self._shown(kind, field, value, "listed_from")

    def _shown(self, kind: str, field: str, value: str, since: str) -> list[Effect]:
        with self._lock:
            found = [(index, self._effects[index]) for index in self._index.get((kind, field, value), [])]
            return [effect for index, effect in found if index < self._revealed or _is_past(getattr(effect, since))]

    def _append(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":")) + "\n"
        with self._lock:
            # One write of one line to a file opened with O_APPEND: a kill leaves the whole line or none of it.
            os.write(self._file, line.encode())
            self._apply(record)

    def _apply(self, record: dict[str, Any]) -> None:
        values = {name: value for name, value in record.items() if name != "record"}
        match record["record"]:
            case "effect":
                self._apply_effect(Effect(**values))
            case "cached_failure":
                entry = (values.pop("kind"), values.pop("key"))
                self._remembered[entry] = Remembered(**values)
            case "magic":
                self._magic_done.add((values["key"], values["fault"]))
            case "reveal":
                self._revealed = len(self._effects)
            case "forget_keys":
                self._remembered.clear()

    def _apply_effect(self, effect: Effect) -> None:
        for field in ("number", "key", "reference"):
            self._index[effect.kind, field, getattr(effect, field)].append(len(self._effects))
        self._effects.append(effect)
        self._counts[effect.kind] += 1
        # The key is remembered by the effect's own record: a kill cannot keep the one and lose the other.
        self._remembered.setdefault((effect.kind, effect.key), Remembered(digest(effect.body), 201, effect.number))


def digest(body: Body) -> str:
    """SHA-256 of a body, the same for every order of its members."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _is_past(moment: float | None) -> bool:
    return moment is not None and moment <= time.time()


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    *lines, torn = path.read_bytes().split(b"\n")
    # A last line without its newline was cut by a crash of the machine: nobody was told of it, so it did not happen.
    if torn:
        os.truncate(path, path.stat().st_size - len(torn))
    return [json.loads(line) for line in lines]


def _open_for_append(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
