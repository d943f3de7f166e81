"""One connection to a foreign PostgreSQL, for one transaction that ends before the call's deadline, whoever dies."""

from __future__ import annotations

import math
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.types.json import Jsonb

from workers.registry import Deadline
from workers.tools.sql_databases import Database

Connection = psycopg.Connection[tuple[Any, ...]]

_STATEMENT_SHARE = 0.9  # of the time left: the rest is for the marker and the commit
_TRANSACTION_TIMEOUT_SINCE = 170_000


@contextmanager
def session(database: Database, password: str | None, deadline: Deadline) -> Iterator[Connection]:
    """A connection that is cut off at the deadline; whatever was not committed by then is rolled back by the server.

    Raises:
        psycopg.Error: no connection, or it broke.
    """
    opened = psycopg.connect(
        database.url,
        password=password,
        autocommit=True,
        connect_timeout=max(2, math.ceil(deadline.remaining())),
        application_name="checkpoint sql.execute",
        cursor_factory=psycopg.RawCursor,
        prepare_threshold=None,
    )
    # Closed, never left as psycopg's own context: that one would commit.
    with closing(opened) as connection, _cut_off(connection, deadline):
        yield connection


def begin(
    connection: Connection, deadline: Deadline, *, lock_seconds: float | None = None, reads: bool = False
) -> None:
    """Begins a transaction that the server itself ends by the deadline, also when nobody speaks to it any more.

    Args:
        lock_seconds: longest wait for a lock; None for as long as a statement may take.
    """
    connection.execute(f"BEGIN ISOLATION LEVEL READ COMMITTED {'READ ONLY' if reads else 'READ WRITE'}")
    left = max(deadline.remaining(), 0.05)
    limits = {
        "statement_timeout": left * _STATEMENT_SHARE,
        "lock_timeout": left * _STATEMENT_SHARE if lock_seconds is None else lock_seconds,
        "idle_in_transaction_session_timeout": left,
    }
    if connection.info.server_version >= _TRANSACTION_TIMEOUT_SINCE:
        limits["transaction_timeout"] = left
    calls = ", ".join(f"set_config('{name}', '{max(1, int(value * 1000))}', true)" for name, value in limits.items())
    # An answered COMMIT is to be on disk: a receipt outlives the server's crash.
    connection.execute(
        f"SELECT {calls}, set_config('synchronous_commit', "
        "replace(current_setting('synchronous_commit'), 'off', 'on'), true)"
    )


def run(connection: Connection, statement: str, parameters: Sequence[Any], *, largest: int) -> tuple[int, list[Any]]:
    """Runs one statement; how many rows it changed or returned, and the returned ones as dictionaries.

    Where it returns rows, at most `largest` + 1 are fetched, so that no answer fills the worker's memory.
    """
    values = [Jsonb(value) if isinstance(value, dict | list) else value for value in parameters]
    cursor = connection.cursor()
    if not _returns_rows(connection, statement, values):
        return cursor.execute(statement.encode(), values).rowcount, []
    rows = list(islice(cursor.stream(statement.encode(), values), largest + 1))
    names = [column.name for column in cursor.description or ()]
    return len(rows), [dict(zip(names, row, strict=True)) for row in rows]


def _returns_rows(connection: Connection, statement: str, values: list[Any]) -> bool:
    """Asks the server, which parses it for that: only it knows SQL."""
    transformer = Transformer(connection)
    transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
    connection.pgconn.send_prepare(b"", statement.encode(), list(transformer.types or ()))
    _answer(connection)
    connection.pgconn.send_describe_prepared(b"")
    return _answer(connection).nfields > 0


def _answer(connection: Connection) -> psycopg.pq.abc.PGresult:
    result: psycopg.pq.abc.PGresult
    (result,) = connection.wait(generators.execute(connection.pgconn))
    if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result)
    return result


@contextmanager
def _cut_off(connection: Connection, deadline: Deadline) -> Iterator[None]:
    """Shuts the socket at the deadline, so that a server which says nothing does not hold the hand."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        timer = threading.Timer(max(deadline.remaining(), 0.0), _shut, [same])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _shut(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
