"""Looks before anything starts. Whatever stands in the way is one line that says what to do about it."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from checkpoint.config.postgres_binaries import OLDEST_MAJOR


class CannotStart(Exception):
    """Something stands in the way; the message is one line for the person who typed the command."""


@contextmanager
def only_one_per_folder(home: Path) -> Iterator[None]:
    """Holds the folder's lock. The kernel lets go of it when this process ends, however it ends.

    Raises:
        CannotStart: another supervisor runs on this folder.
    """
    home.mkdir(parents=True, exist_ok=True)
    file = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 20).decode().strip()
        raise CannotStart(
            f"Checkpoint already runs in this folder (process {holder}): use that one, or stop it"
        ) from None
    else:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def require_free_port(port: int, *, variable: str, host: str = "127.0.0.1") -> None:
    """Raises CannotStart when something listens on `port` already."""
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((host, port)) != 0 and _can_bind(host, port):
            return
    raise CannotStart(f"Port {port} is in use: stop what listens there, or set {variable} to a free port")


def _can_bind(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def port_setting(env: Mapping[str, str], variable: str, default: int) -> int:
    """A port number from the environment.

    Raises:
        CannotStart: it is not a port number.
    """
    value = env.get(variable) or str(default)
    if not (value.isascii() and value.isdecimal()) or not 0 < int(value) < 65536:
        raise CannotStart(f"{variable} is {value!r}: set it to a port number between 1 and 65535")
    return int(value)


def check_external_database(env: Mapping[str, str]) -> None:
    """Raises CannotStart unless both roles of an external server can be used as they are meant."""
    if not env.get("DATABASE_OWNER_URL"):
        raise CannotStart(
            "DATABASE_URL is set without DATABASE_OWNER_URL: run deploy/roles.sql on that server and set both "
            "(the application's role must not own its tables)"
        )
    for variable in ("DATABASE_OWNER_URL", "DATABASE_URL"):
        superuser = _connect_and_look(variable, env[variable])
        if superuser and variable == "DATABASE_URL":
            raise CannotStart(
                "DATABASE_URL connects as a superuser, which could lift every rule of the record: "
                "run deploy/roles.sql and connect as checkpoint_app"
            )


def _connect_and_look(variable: str, url: str) -> bool:
    """Whether the role is a superuser."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            major = connection.info.server_version // 10_000
            row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise CannotStart(f"{variable} does not answer ({reason}): start that server, or unset the variable") from None
    if major < OLDEST_MAJOR:
        raise CannotStart(
            f"{variable} is an old database: PostgreSQL {major}, and {OLDEST_MAJOR} is the oldest that will do"
        )
    return bool(row and row[0])
