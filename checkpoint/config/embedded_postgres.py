"""The embedded PostgreSQL server: one folder, one server, stopped with whoever started it.

What is committed survives the death of the server, of its starter and of the machine (unless `fsync=False`, for
tests). A server left behind by a killed starter is stopped before a new one starts on the same folder.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from checkpoint.config import guard
from checkpoint.config.environment import BASE_DIR
from checkpoint.config.postgres_binaries import PostgresUnavailable, Programs, RunAs, find_programs, run_as

START_SECONDS = 30.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.02
DATABASE = "checkpoint"
SUPERUSER, OWNER, APP = "postgres", "checkpoint_owner", "checkpoint_app"
ROLES_SQL = BASE_DIR / "deploy" / "roles.sql"
# For an SSD and for tables that begin empty: with the default page cost the planner reads young tables whole, and keeps
# doing so in statements that it has prepared. Compressed page images and rare checkpoints write less.
TUNED = ("random_page_cost=1.1", "wal_compression=on", "max_wal_size=2GB", "checkpoint_timeout=15min")
NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class OldDatabase(PostgresUnavailable):
    """The folder's data was written by another major version of PostgreSQL."""


@dataclass(frozen=True)
class Addresses:
    """Connection URLs of one database, by role.

    Attributes:
        superuser: for tests and set-up only.
        owner: for migrations (DATABASE_OWNER_URL).
        app: for everything else (DATABASE_URL).
    """

    superuser: str
    owner: str
    app: str


class Server:
    """A server on `folder`. Its log is `folder/log`; its passwords are readable by the folder's owner only."""

    def __init__(self, folder: Path, *, fsync: bool = True) -> None:
        self.folder = folder.resolve()
        self.cluster = self.folder / "cluster"
        self.fsync = fsync
        self.port = 0
        self._passwords: dict[str, str] = {}
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self) -> Addresses:
        """Makes the database where it does not exist yet, starts the server and waits until it answers.

        Starting again after the server died keeps its port, so that known addresses stay right.

        Raises:
            PostgresUnavailable: it cannot run here; the message says why in one line.
        """
        programs, way = find_programs(), run_as()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._passwords = {role: _password(self._password_file(role)) for role in (SUPERUSER, OWNER, APP)}
        if not self.cluster.exists():
            _make_cluster(self.cluster, programs, way, password_file=self._password_file(SUPERUSER))
        _refuse_other_version(self.cluster, programs)
        _stop_leftover(self.cluster)
        _give_to(self.cluster, way.uid)
        self._run(programs, way)
        _make_database_and_roles(self.address(SUPERUSER, "postgres"), self.address(SUPERUSER), self._passwords)
        return Addresses(self.address(SUPERUSER), self.address(OWNER), self.address(APP))

    def address(self, role: str, database: str = DATABASE) -> str:
        """The URL under which `role` reaches `database`."""
        return _url(role, self._passwords[role], self.port, database)

    def _password_file(self, role: str) -> Path:
        return self.folder / f"password.{role}"

    def alive(self) -> bool:
        """Whether the server process runs."""
        return self._guard is not None and self._guard.poll() is None

    def stop(self) -> None:
        """Fast shutdown: open connections are ended, what was committed is kept."""
        if self._guard is not None:
            guard.ask_to_stop(self._guard)
            self._guard.wait()

    def _run(self, programs: Programs, way: RunAs) -> None:
        """Tries again while the last server's processes still hold its memory, or another program took the port."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            port = self.port or _free_port()
            with (self.folder / "log").open("ab") as log:
                command = self._command(programs, way, port)
                self._guard = guard.start(command, stop_signal=signal.SIGINT, grace=STOP_SECONDS, output=log.fileno())
            if self._answers(port, deadline):
                self.port = port
                return
            if time.monotonic() > deadline:
                self.stop()
                raise PostgresUnavailable(f"PostgreSQL does not start: {_last_line(self.folder / 'log')}")

    def _command(self, programs: Programs, way: RunAs, port: int) -> list[str]:
        options = ["listen_addresses=127.0.0.1", "unix_socket_directories=", *TUNED]
        options += () if self.fsync else NOT_DURABLE
        flags = [word for option in options for word in ("-c", option)]
        return [*way.prefix, str(programs.folder / "postgres"), "-D", str(self.cluster), "-p", str(port), *flags]

    def _answers(self, port: int, deadline: float) -> bool:
        """Waits for the server; False once it has died or the time is over."""
        while self.alive() and time.monotonic() < deadline:
            try:
                psycopg.connect(_url(SUPERUSER, self._passwords[SUPERUSER], port, "postgres")).close()
                return True
            except psycopg.OperationalError:
                time.sleep(POLL_SECONDS)
        return False


def _url(role: str, password: str, port: int, database: str) -> str:
    return f"postgresql://{role}:{password}@127.0.0.1:{port}/{database}"


def _password(file: Path) -> str:
    """Made once. Each role has its own: who holds the application's must not hold the superuser's."""
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(16), encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()


def _make_cluster(cluster: Path, programs: Programs, way: RunAs, *, password_file: Path) -> None:
    """Renamed into place when complete, so that an interrupted first start leaves nothing half made."""
    draft = cluster.with_name("cluster.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    _give_to(draft, way.uid)
    command = [*way.prefix, str(programs.folder / "initdb"), "-D", str(draft), "-U", SUPERUSER, "--auth=scram-sha-256"]
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if programs.major >= 17 else []
    command += ["--encoding=UTF8", "--locale=C", *locale, f"--pwfile={password_file}"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode != 0:
        raise PostgresUnavailable(f"initdb failed: {(made.stderr or made.stdout).strip().splitlines()[-1]}")
    draft.rename(cluster)


def _refuse_other_version(cluster: Path, programs: Programs) -> None:
    written_by = (cluster / "PG_VERSION").read_text(encoding="ascii").strip()
    if written_by != str(programs.major):
        raise OldDatabase(
            f"{cluster.parent} is an old database: PostgreSQL {written_by} wrote it, here runs {programs.major}. "
            f"Carry it over with {written_by}'s pg_dump, or drop it with `make reset`"
        )


def _stop_leftover(cluster: Path) -> None:
    """Ends a server that a killed starter left on this folder, and removes a stale lock file.

    PostgreSQL itself would take any process with the old number (after a reboot, say) for its predecessor.
    """
    lock = cluster / "postmaster.pid"
    if not lock.exists():
        return
    pid = int(lock.read_text(encoding="utf-8").split()[0])
    if _command_line(pid).find(str(cluster)) < 0:
        lock.unlink()
        return
    os.kill(pid, signal.SIGINT)
    deadline = time.monotonic() + STOP_SECONDS
    while _command_line(pid) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _command_line(pid: int) -> str:
    """The process's command line, empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        if Path("/proc/self").exists():
            return ""
    return subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True).stdout


def _give_to(folder: Path, uid: int | None) -> None:
    """PostgreSQL insists on owning its data. `uid` None means that it already does."""
    if uid is None or folder.stat().st_uid == uid:
        return
    for parent, _, files in os.walk(folder):
        for name in ("", *files):
            os.chown(Path(parent, name), uid, uid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_database_and_roles(server_url: str, database_url: str, passwords: dict[str, str]) -> None:
    """Runs at every start: it changes nothing that is right already, and mends what is not."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(ROLES_SQL.read_bytes())
        for role in (OWNER, APP):
            connection.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(passwords[role]))
            )


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it wrote no log"
