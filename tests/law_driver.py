"""Speaks raw SQL to the record, past every line of Python, as the application's role or as the owner of the tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from checkpoint.config.embedded_postgres import Addresses

ACCEPTED = ""
_LAW = re.compile(r"checkpoint law (\w+)")


class RawSession:
    """One connection. What it tries is rolled back."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url)

    def tries(self, *statements: str, **parameters: Any) -> str:
        """The name of the law that refuses the statements; "no right" where the role may not do it at all.

        Returns:
            ACCEPTED if nothing objects.
        """
        try:
            with self.connection.transaction(force_rollback=True):
                for statement in statements:
                    self.connection.execute(statement.encode(), parameters)
        except psycopg.errors.InsufficientPrivilege:
            return "no right"
        except psycopg.IntegrityError as refusal:
            law = _LAW.match(str(refusal))
            return law.group(1) if law else f"constraint {refusal.diag.constraint_name}"
        return ACCEPTED

    def updates(self, table: str, row: Any, **values: Any) -> str:
        """Tries to set these columns of the row with this id."""
        changes = ", ".join(f"{column} = %({column})s" for column in values)
        return self.tries(f"UPDATE {table} SET {changes} WHERE id = %(row)s", row=row, **values)

    def inserts_copy(self, table: str, row: Any, **values: Any) -> str:
        """Tries to insert a copy of the row in which these columns are other."""
        return self.tries(copy_of(table), row=row, values=json.dumps(values, default=str))

    def column(self, query: str, **parameters: Any) -> list[Any]:
        """The first column of what a query finds."""
        with self.connection.transaction():
            return [row[0] for row in self.connection.execute(query.encode(), parameters).fetchall()]


def copy_of(table: str) -> str:
    """SQL that inserts a copy of row %(row)s with the columns of the JSON object %(values)s changed."""
    name = sql.Identifier(table).as_string()
    return (
        f"INSERT INTO {name} SELECT copy.* FROM {name} AS kept, jsonb_populate_record(kept, %(values)s) AS copy"
        " WHERE kept.id = %(row)s"
    )


@pytest.fixture(params=["application", "owner"])
def raw(request: pytest.FixtureRequest, database: Addresses) -> Iterator[RawSession]:
    """The law holds for both."""
    session = RawSession(database.app if request.param == "application" else database.owner)
    yield session
    session.connection.close()


@pytest.fixture
def application(database: Addresses) -> Iterator[RawSession]:
    """As web and workers connect."""
    session = RawSession(database.app)
    yield session
    session.connection.close()


@pytest.fixture
def superuser(database: Addresses) -> Iterator[RawSession]:
    """For what stands above the law."""
    session = RawSession(database.superuser)
    yield session
    session.connection.close()
