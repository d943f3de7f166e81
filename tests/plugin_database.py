"""Gives each pytest process a PostgreSQL server of its own and connects Django to it as the APPLICATION role.

Loaded by `-p` in pyproject.toml, before Django reads its settings. By default the server is the embedded one, without
fsync, ended with the process. CHECKPOINT_TEST_SERVER_URL (a superuser's address) uses another server instead, with a
database for each process. DATABASE_URL is ignored on purpose: tests empty the database that they are given.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.db import connections
from pytest_django.plugin import DjangoDbBlocker

from checkpoint.config.embedded_postgres import Addresses, Server
from checkpoint.config.environment import BASE_DIR
from tests import external_server, flush, kept_cluster

MIGRATE_SECONDS = 300  # on a machine that does much else at the same time


@dataclass
class _Session:
    """What this process started. Empty in the process that only hands tests to others."""

    home: Path
    addresses: Addresses
    server: Server | None
    migrated: bool


_session: list[_Session] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Starts the server before pytest-django imports the settings."""
    if not _only_hands_out_tests(early_config):
        _session.append(_start())
    yield


def pytest_unconfigure() -> None:
    """Stops the server and removes its folder."""
    while _session:
        session = _session.pop()
        if session.server is not None:
            session.server.stop()
        shutil.rmtree(session.home, ignore_errors=True)


def _only_hands_out_tests(config: pytest.Config) -> bool:
    """True in the xdist process whose workers run the tests."""
    return "PYTEST_XDIST_WORKER" not in os.environ and bool(getattr(config.known_args_namespace, "numprocesses", None))


def _start() -> _Session:
    home = Path(tempfile.mkdtemp(prefix="checkpoint-tests-"))
    elsewhere = os.environ.get("CHECKPOINT_TEST_SERVER_URL")
    server = None if elsewhere else Server(home / "postgres", fsync=False)
    migrated = server is not None and kept_cluster.restore(server.folder)
    addresses = server.start() if server else external_server.prepare(str(elsewhere))
    os.environ.update(
        CHECKPOINT_HOME=str(home),
        DATABASE_URL=addresses.app,
        DATABASE_OWNER_URL=addresses.owner,
        DATABASE_DIRECT_URL=addresses.app,
        PYTHONPATH=os.pathsep.join([str(BASE_DIR), *filter(None, [os.environ.get("PYTHONPATH")])]),
    )
    os.environ.pop("BROKER_URL", None)
    return _Session(home, addresses, server, migrated)


@pytest.fixture(scope="session")
def database_server() -> Server | None:
    """The embedded server of this process; None where CHECKPOINT_TEST_SERVER_URL names another."""
    return _session[0].server


@pytest.fixture(scope="session")
def database_addresses() -> Addresses:
    """The addresses of this process's database, by role."""
    return _session[0].addresses


@pytest.fixture(scope="session")
def django_db_setup(database_addresses: Addresses) -> None:
    """Replaces pytest-django's: migrates once as the owner and remembers what the migrations left in the tables."""
    if _session[0].migrated:
        return
    migrate = [sys.executable, str(BASE_DIR / "manage.py"), "migrate", "--verbosity", "0"]
    env = {**os.environ, "CHECKPOINT_AS_OWNER": "1"}
    done = subprocess.run(migrate, env=env, timeout=MIGRATE_SECONDS, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.exit(f"migrate failed, so no test can run:\n{done.stderr[-3000:]}", returncode=1)
    flush.remember_seed(database_addresses.superuser)
    if (server := _session[0].server) is not None:
        kept_cluster.keep(server)


@pytest.fixture
def database(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, database_addresses: Addresses
) -> Iterator[Addresses]:
    """A database in which commits are real and other processes can take part; empty before and after."""
    flush.flush(database_addresses.superuser)
    with django_db_blocker.unblock():
        yield database_addresses
        connections.close_all()
    flush.flush(database_addresses.superuser)
