"""The hot path's way to PostgreSQL: prepared statements, and whole sets of rows as one JSON parameter.

Django's cursors put values into the statement's text, which is planned anew each time; arrays of values cost more to
write than the rows they carry. Here a statement is planned once for a connection, and a set is one parameter that
`json_to_recordset` reads on the server. Everything runs on Django's own connection and in its transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import psycopg
from django.db import connection


def fetch(statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    """The rows that a statement returns."""
    return _run(statement, parameters).fetchall()


def change(statement: str, **parameters: Any) -> int:
    """Runs a statement that returns nothing; says how many rows it changed."""
    return _run(statement, parameters).rowcount


@contextmanager
def pipelined() -> Iterator[None]:
    """Statements inside are sent without waiting for each other's answers; the first `fetch` waits for all before it.

    What a statement raises comes up at the next wait, at the latest at the end of the block.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


@dataclass(frozen=True)
class Sent:
    """A statement that was sent; how many rows it changed is known after the pipeline's end."""

    cursor: psycopg.Cursor[tuple[Any, ...]]

    @property
    def count(self) -> int:
        """How many rows it changed."""
        return self.cursor.rowcount


def send(statement: str, **parameters: Any) -> Sent:
    """Sends a statement whose count is looked at later."""
    return Sent(_run(statement, parameters))


def rows(values: Sequence[Any]) -> str:
    """A set of rows, as dataclasses or dicts, for `json_to_recordset(%(name)s)`."""
    return orjson.dumps(values).decode()


def _run(statement: str, parameters: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
    connection.ensure_connection()
    with connection.wrap_database_errors:
        return psycopg.Cursor(connection.connection).execute(statement, parameters, prepare=True)
