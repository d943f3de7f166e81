"""Empties the database between tests, the one place that steps over the law.

Append-only tables refuse DELETE and TRUNCATE to everyone, so this works as the superuser in replica mode, where
ordinary triggers and foreign keys do not fire. Rows that migrations made (content types, permissions, groups, a first
policy version) are kept in a schema of their own and put back.
"""

from __future__ import annotations

import psycopg

UNTOUCHED = ("django_migrations",)
LOCK_TIMEOUT = "5s"

# Queues of the broker are made when they are first used, so they are looked up each time.
_INSTALL = """
CREATE SCHEMA tests_seed;
CREATE FUNCTION tests_seed.flush() RETURNS void LANGUAGE plpgsql
SET session_replication_role = replica SET lock_timeout = '{lock_timeout}' AS $flush$
DECLARE queue regclass;
BEGIN
  {statements};
  FOR queue IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = to_regnamespace('pgmq')
               AND c.relkind = 'r' AND c.relname ~ '^[qa]_' LOOP
    EXECUTE format('DELETE FROM %s', queue);
  END LOOP;
END
$flush$;
"""

_TABLES = """
SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND NOT c.relname = ANY(%s)
GROUP BY 1 ORDER BY 1
"""

_connections: dict[str, psycopg.Connection] = {}


def remember_seed(superuser_url: str) -> None:
    """Call once after the migrations: what the tables hold now is what every flush leaves behind."""
    with psycopg.connect(superuser_url) as connection:
        tables = connection.execute(_TABLES, [list(UNTOUCHED)]).fetchall()
        seeded = [(name, columns) for name, columns in tables if _has_rows(connection, name)]
        statements = [f'DELETE FROM public."{name}"' for name, _ in tables]
        statements += [
            f'INSERT INTO public."{name}" ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM tests_seed."{name}"'
            for name, columns in seeded
        ]
        connection.execute(_INSTALL.format(lock_timeout=LOCK_TIMEOUT, statements=";\n  ".join(statements)))
        for name, columns in seeded:
            connection.execute(f'CREATE TABLE tests_seed."{name}" AS SELECT {columns} FROM public."{name}"')


def flush(superuser_url: str) -> None:
    """Brings every table back to the seed. Waits at most LOCK_TIMEOUT for a transaction left open by a test."""
    connection = _connection(superuser_url)
    try:
        connection.execute("SELECT tests_seed.flush()")
    except psycopg.OperationalError:
        if not connection.closed:
            raise
        # A test restarted the server under this connection.
        _connection(superuser_url).execute("SELECT tests_seed.flush()")


def _connection(url: str) -> psycopg.Connection:
    """Kept open between tests: connecting costs more than the flush."""
    if url not in _connections or _connections[url].closed:
        _connections[url] = psycopg.connect(url, autocommit=True)
    return _connections[url]


def _has_rows(connection: psycopg.Connection, table: str) -> bool:
    return connection.execute(f'SELECT FROM public."{table}" LIMIT 1').fetchone() is not None


def step_over_the_law(superuser_url: str, statement: str) -> None:
    """Runs a statement with triggers and foreign keys off, to damage a record as no user of ours can."""
    with psycopg.connect(superuser_url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement)
