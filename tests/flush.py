"""Empties the database between tests, the one place that steps over the law.

Append-only tables refuse DELETE and TRUNCATE to everyone, so this works as the superuser in replica mode, where
ordinary triggers and foreign keys do not fire. Rows that migrations made (content types, permissions, groups, a first
policy version) are kept in a schema of their own and put back. It all happens in one statement.
"""

from __future__ import annotations

import psycopg

KEPT = "tests_seed"
UNTOUCHED = ("django_migrations",)
LOCK_TIMEOUT = "5s"

_TABLES = """
SELECT n.nspname, c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relkind = 'r' AND NOT c.relname = ANY(%s)
  AND (n.nspname = 'public' OR n.nspname = 'pgmq' AND (c.relname LIKE 'q\\_%%' OR c.relname LIKE 'a\\_%%'))
GROUP BY 1, 2 ORDER BY 1, 2
"""


def remember_seed(superuser_url: str) -> None:
    """Call once after the migrations: what the tables hold now is what every flush leaves behind."""
    with psycopg.connect(superuser_url) as connection:
        connection.execute(f"CREATE SCHEMA {KEPT}")
        for schema, table, columns in _tables(connection):
            connection.execute(f'CREATE TABLE {KEPT}."{table}" AS SELECT {columns} FROM {schema}."{table}"')


def flush(superuser_url: str) -> None:
    """Brings every table back to the seed. Waits at most LOCK_TIMEOUT for a transaction left open by a test."""
    with psycopg.connect(superuser_url) as connection:
        connection.execute(f"SET session_replication_role = replica; SET lock_timeout = '{LOCK_TIMEOUT}'")
        seeded = {name for (name,) in connection.execute(_SEEDED)}
        connection.execute(";".join(_statements(_tables(connection), seeded)))


_SEEDED = f"SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = '{KEPT}'::regnamespace"


def _statements(tables: list[tuple[str, str, str]], seeded: set[str]) -> list[str]:
    delete = [f'DELETE FROM {schema}."{table}"' for schema, table, _ in tables]
    restore = [
        f'INSERT INTO {schema}."{table}" ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {KEPT}."{table}"'
        for schema, table, columns in tables
        if table in seeded
    ]
    return delete + restore


def _tables(connection: psycopg.Connection) -> list[tuple[str, str, str]]:
    return connection.execute(_TABLES, [list(UNTOUCHED)]).fetchall()
