"""The two commands: what stands in the way is one line, and nothing is left running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import psycopg
import pytest

from checkpoint.config import preflight
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.config.environment import BASE_DIR
from checkpoint.config.preflight import CannotStart
from checkpoint.config.processes import read_procfile

FIND_PYTHON = BASE_DIR / "deploy" / "find-python.sh"
UP_SECONDS = 40


def test_a_busy_port_is_one_line_and_starts_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _manage("up", tmp_path, CHECKPOINT_PORT=str(port), CHECKPOINT_SANDBOX_PORT=str(_free_port()))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"Port {port} is in use: stop what listens there, or set CHECKPOINT_PORT to a free port\n"
    assert not (tmp_path / "postgres").exists()


def test_a_second_supervisor_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with preflight.only_one_per_folder(tmp_path):
        with (
            pytest.raises(CannotStart, match=rf"^Checkpoint already runs in this folder \(process {os.getpid()}\)"),
            preflight.only_one_per_folder(tmp_path),
        ):
            pass
        assert _manage("drop_data", tmp_path).returncode == 1
    assert (tmp_path / "lock").exists()


def test_console_and_sandbox_do_not_share_a_port(tmp_path: Path) -> None:
    done = _manage("up", tmp_path, CHECKPOINT_PORT="8123", CHECKPOINT_SANDBOX_PORT="8123")
    said = "CHECKPOINT_PORT and CHECKPOINT_SANDBOX_PORT are both 8123: set one of them to another port"
    assert (done.returncode, done.stdout.strip()) == (1, said)


@pytest.mark.parametrize("value", ["http", "0", "70000", "-1", "8000.5", "٣"])
def test_a_port_that_is_none_is_one_line(value: str) -> None:
    with pytest.raises(CannotStart, match=r"set it to a port number between 1 and 65535$"):
        preflight.port_setting({"CHECKPOINT_PORT": value}, "CHECKPOINT_PORT", 8000)


EXTERNAL = [
    ({"DATABASE_URL": "superuser"}, "DATABASE_URL is set without DATABASE_OWNER_URL: run deploy/roles.sql"),
    ({"DATABASE_URL": "superuser", "DATABASE_OWNER_URL": "owner"}, "DATABASE_URL connects as a superuser"),
    ({"DATABASE_URL": "app", "DATABASE_OWNER_URL": "silent"}, "DATABASE_OWNER_URL does not answer"),
]


@pytest.mark.parametrize(("roles", "line"), EXTERNAL)
def test_an_external_database_needs_both_roles(database_addresses: Addresses, roles: dict[str, str], line: str) -> None:
    known = {**asdict(database_addresses), "silent": "postgresql://127.0.0.1:1/nobody"}
    with pytest.raises(CannotStart) as refused:
        preflight.check_external_database({name: known[role] for name, role in roles.items()})
    assert str(refused.value).startswith(line)
    assert len(str(refused.value).splitlines()) == 1


def test_a_command_without_a_database_says_what_to_do(tmp_path: Path) -> None:
    done = _manage("showmigrations", tmp_path)
    assert done.returncode == 1
    assert "start it with `make up`, or set DATABASE_URL" in done.stderr.splitlines()[-1]


def test_a_database_from_the_future_is_refused(database: Addresses, tmp_path: Path) -> None:
    with psycopg.connect(database.owner) as connection:
        connection.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('checkpoint', '9999_x', now())")
    try:
        done = _manage(
            "migrate_database",
            tmp_path,
            DATABASE_URL=database.app,
            DATABASE_OWNER_URL=database.owner,
            CHECKPOINT_AS_OWNER="1",
        )
    finally:
        with psycopg.connect(database.owner) as connection:
            connection.execute("DELETE FROM django_migrations WHERE name = '9999_x'")
    assert done.returncode == 1
    assert "changed by another version of Checkpoint (it has checkpoint.9999_x)" in done.stderr


def test_the_interpreter_is_found_by_executing_candidates(tmp_path: Path) -> None:
    """A version manager's shim exists and exits with 127; an old interpreter runs but is too old."""
    shims, real = tmp_path / "shims", tmp_path / "real"
    for folder, name, script in (
        (shims, "python3.13", "exit 127"),
        (shims, "python3.14", "exit 1"),
        (real, "python3", f'exec {sys.executable} "$@"'),
    ):
        _script(folder / name, script)
    found = _find_python(f"{shims}:{real}", tmp_path)
    assert found.returncode == 0
    assert Path(found.stdout.strip()).resolve() == Path(sys.executable).resolve()


def test_no_interpreter_is_one_line(tmp_path: Path) -> None:
    _script(tmp_path / "python3", "exit 1")
    found = _find_python(str(tmp_path), tmp_path)
    if found.returncode == 0:
        pytest.skip("a Python is installed at one of the fixed places that are looked at last")
    assert found.stdout == ""
    assert found.stderr.startswith("No Python 3.12, 3.13 or 3.14 found: install one")
    assert len(found.stderr.splitlines()) == 1


def test_an_interpreter_without_venv_is_named(tmp_path: Path) -> None:
    """Debian's python3 without python3-venv."""
    _script(tmp_path / "python3.12", f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"')
    found = _find_python(str(tmp_path), tmp_path)
    if found.returncode == 0:
        pytest.skip("a Python is installed at one of the fixed places that are looked at last")
    assert f"{tmp_path}/python3.12 cannot make virtual environments" in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_the_procfile_names_the_processes() -> None:
    assert set(read_procfile(BASE_DIR / "Procfile")) == {"web", "worker1", "worker2", "scheduler", "sandbox"}


@pytest.mark.slow
def test_everything_comes_up_survives_kills_and_stops(tmp_path: Path) -> None:
    """The database is killed, then the supervisor itself; a second one finds the data and stops in order."""
    home, log = tmp_path / "home", tmp_path / "log"
    port, sandbox = _free_port(), _free_port()
    console = f"http://127.0.0.1:{port}/"
    with _up(home, log, port, sandbox) as first:
        _wait(lambda: f"open {console}" in log.read_text(), first)
        assert "olivia" in log.read_text()
        os.kill(_postmaster(home), signal.SIGKILL)
        _wait(lambda: "postgres | died; starting it again" in log.read_text(), first)
        _wait(lambda: "olivia" in _usernames(home), first)
    _wait(lambda: not _listens(port) and not _listens(sandbox) and not _usernames(home))
    with _up(home, log, port, sandbox) as second:
        _wait(lambda: f"open {console}" in log.read_text(), second)
        assert "olivia" not in log.read_text()
        assert "olivia" in _usernames(home)
        second.send_signal(signal.SIGTERM)
        assert second.wait(UP_SECONDS) == 0
    assert log.read_text().splitlines()[-1] == "Stopped; the data is kept."
    assert not _listens(port)
    assert _manage("drop_data", home).returncode == 0
    assert not home.exists()


def _environment(home: Path, **extra: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "CHECKPOINT_HOME": str(home), **extra}


def _manage(command: str, home: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, str(BASE_DIR / "manage.py"), command]
    return subprocess.run(arguments, env=_environment(home, **extra), capture_output=True, text=True, timeout=60)


@contextmanager
def _up(home: Path, log: Path, port: int, sandbox: int) -> Iterator[subprocess.Popen[bytes]]:
    """A running supervisor; killed at the end if it still runs."""
    ports = {"CHECKPOINT_PORT": port, "CHECKPOINT_SANDBOX_PORT": sandbox, "CHECKPOINT_SANDBOX_MAIL_PORT": _free_port()}
    env = _environment(home, **{variable: str(number) for variable, number in ports.items()})
    with log.open("wb") as output:
        arguments = [sys.executable, str(BASE_DIR / "manage.py"), "up"]
        process = subprocess.Popen(arguments, env=env, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + UP_SECONDS
    while not condition():
        assert process is None or process.poll() is None, "the supervisor ended"
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def _usernames(home: Path) -> set[str]:
    """Asks the embedded server that `.checkpoint/env` names; nobody while it does not answer."""
    url = dict(line.split("=", 1) for line in (home / "env").read_text().splitlines())["DATABASE_URL"]
    try:
        with psycopg.connect(url) as connection:
            return {name for (name,) in connection.execute("SELECT username FROM auth_user")}
    except psycopg.OperationalError:
        return set()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _find_python(path: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": path, "HOME": str(home)}
    return subprocess.run(["/bin/sh", str(FIND_PYTHON)], env=env, capture_output=True, text=True)


def _script(file: Path, body: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def _postmaster(home: Path) -> int:
    return int((home / "postgres" / "cluster" / "postmaster.pid").read_text().split()[0])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
