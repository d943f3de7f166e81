"""Migrations go back and forth on a database of their own, and leave what they found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from checkpoint.config.embedded_postgres import ROLES_SQL, Addresses
from checkpoint.config.environment import BASE_DIR

SECONDS = 400  # only against a hang: a busy machine takes minutes over every migration and back

# Everything that a migration can make in the public schema, each thing as one line.
_SCHEMA = """
SELECT format('column %s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default)
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT format('right %s %s %s', grantee, privilege_type, table_name)
FROM information_schema.role_table_grants WHERE table_schema = 'public'
UNION ALL SELECT format('right %s %s %s.%s', grantee, privilege_type, table_name, column_name)
FROM information_schema.role_column_grants WHERE table_schema = 'public'
UNION ALL SELECT format('options %s %s', relname, reloptions) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL
ORDER BY 1
"""


@pytest.fixture
def empty_database(database_addresses: Addresses) -> Iterator[Addresses]:
    """A database without tables, on the server of this process."""
    name = sql.Identifier(f"migrations_{os.getpid()}")
    urls = (database_addresses.superuser, database_addresses.owner, database_addresses.app)
    with psycopg.connect(database_addresses.superuser, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            made = Addresses(*(urlsplit(url)._replace(path=f"/migrations_{os.getpid()}").geturl() for url in urls))
            with psycopg.connect(made.superuser, autocommit=True) as connection:
                connection.execute(ROLES_SQL.read_bytes())
            yield made
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def migrate(addresses: Addresses, *target: str) -> None:
    """Runs `manage.py migrate` on that database, as the owner."""
    ours = {"DATABASE_URL": addresses.app, "DATABASE_OWNER_URL": addresses.owner, "CHECKPOINT_AS_OWNER": "1"}
    command = [sys.executable, str(BASE_DIR / "manage.py"), "migrate", "--verbosity", "0", *target]
    done = subprocess.run(command, env={**os.environ, **ours}, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]


def schema(addresses: Addresses) -> list[str]:
    """What is in the database now."""
    with psycopg.connect(addresses.superuser) as connection:
        return [line for (line,) in connection.execute(_SCHEMA).fetchall()]


@pytest.mark.slow
@pytest.mark.timeout(4 * SECONDS)
def test_our_migrations_taken_back_leave_nothing_and_made_again_make_the_same(empty_database: Addresses) -> None:
    migrate(empty_database)
    before = schema(empty_database)
    assert any("law_legal_arrows_only" in line for line in before)
    for app in ("checkpoint", "workers"):  # approvals stand on checkpoint and go with it
        migrate(empty_database, app, "zero")
    assert ours(schema(empty_database)) == []
    with psycopg.connect(empty_database.superuser) as connection:
        assert connection.execute("SELECT to_regnamespace('pgmq')").fetchone() == (None,)
    migrate(empty_database)
    assert schema(empty_database) == before


def ours(lines: list[str]) -> list[str]:
    """What is named after one of our apps; rights that our roles have on other tables are not."""
    named = [line for line in lines if re.search(r"(checkpoint|approvals|workers)_", line)]
    return [line for line in named if not re.match(r"right checkpoint_\w+ \w+ (auth|django)_", line)]
