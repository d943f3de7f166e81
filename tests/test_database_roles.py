"""The application's role holds no power over the record; the embedded server keeps what was committed."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psycopg
import pytest

from checkpoint.config import embedded_postgres, postgres_binaries
from checkpoint.config.embedded_postgres import Addresses, OldDatabase, Server
from tests import flush

FORBIDDEN = [
    "TRUNCATE django_session",
    "ALTER TABLE django_session DISABLE TRIGGER ALL",
    "SET session_replication_role = replica",
    "CREATE TABLE mine ()",
    "CREATE TEMPORARY TABLE django_session ()",
    "CREATE ROLE somebody",
    "ALTER ROLE checkpoint_app SUPERUSER",
    "SET ROLE checkpoint_owner",
    "DROP TABLE django_session",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_application_role_is_refused(database: Addresses, statement: str) -> None:
    with psycopg.connect(database.app) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


def test_the_application_role_owns_nothing(database: Addresses) -> None:
    with psycopg.connect(database.superuser) as connection:
        owned = connection.execute("SELECT relname FROM pg_class WHERE relowner = 'checkpoint_app'::regrole").fetchall()
    assert owned == []


def test_django_connects_as_the_application_role(database: Addresses) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("checkpoint_app",)


def test_the_application_role_reads_and_writes_djangos_tables(database: Addresses) -> None:
    from django.contrib.auth.models import User

    user = User.objects.create_user("somebody")
    user.delete()


def test_committed_rows_survive_kill_minus_nine(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        addresses = server.start()
        with psycopg.connect(addresses.owner) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS value")
        os.kill(_postmaster(tmp_path), signal.SIGKILL)
        assert server.start() == addresses, "a restarted server keeps its address"
        with psycopg.connect(addresses.app) as connection:
            assert connection.execute("SELECT value FROM kept").fetchone() == (1,)
    finally:
        server.stop()


def test_a_server_left_by_a_dead_starter_is_replaced(tmp_path: Path) -> None:
    left_behind = Server(tmp_path, fsync=False)
    left_behind.start()
    old = _postmaster(tmp_path)
    server = Server(tmp_path, fsync=False)
    try:
        server.start()
        assert _postmaster(tmp_path) != old
        assert not left_behind.alive()
    finally:
        server.stop()
        left_behind.stop()


def test_an_old_database_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "PG_VERSION").write_text("13\n")
    with pytest.raises(OldDatabase, match=r"^[^\n]*PostgreSQL 13 wrote it[^\n]*make reset[^\n]*$"):
        Server(tmp_path).start()


def _postmaster(folder: Path) -> int:
    return int((folder / "cluster" / "postmaster.pid").read_text().split()[0])


def test_a_flush_removes_what_a_test_wrote_and_keeps_what_migrations_made(database: Addresses) -> None:
    from django.contrib.auth.models import Group, Permission, User

    before = (set(Group.objects.values_list("name")), set(Permission.objects.values_list("pk", "codename")))
    User.objects.create_user("somebody")
    Group.objects.all().delete()
    flush.flush(database.superuser)
    assert not User.objects.exists()
    assert before == (set(Group.objects.values_list("name")), set(Permission.objects.values_list("pk", "codename")))


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root must change")
def test_where_user_namespaces_are_blocked_root_becomes_nobody_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for way in (postgres_binaries.ordinary_user(), postgres_binaries.user_namespace()):
        if not postgres_binaries.works(way):
            pytest.skip(f"{way.prefix[0]} does not work here")
        monkeypatch.setattr(embedded_postgres, "run_as", lambda way=way: way)
        server = Server(tmp_path)
        addresses = server.start()
        with psycopg.connect(addresses.owner) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept ()")
        server.stop()
        assert server.cluster.stat().st_uid == way.uid
