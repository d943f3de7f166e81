"""The arguments of `sql.execute`: one statement with bound parameters, for a database that is named, not addressed."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, JsonValue

from workers.tools.http_arguments import Model

# No COMMIT, ROLLBACK, SET, COPY or DDL: the transaction is the tool's. PostgreSQL itself refuses a second statement.
_CHANGES = r"^\s*(?i:insert|update|delete|merge|with|select|call)\b"
_READS = r"^\s*(?i:select|with|values)\b"
_NAME = r"^[a-z][a-z0-9-]{0,31}$(?!\n)"


def _statement(pattern: str, must_be: str) -> Any:
    return Field(pattern=pattern, max_length=16_384, json_schema_extra={"x-must-be": must_be})


_CHANGES_WORDS = "one statement that begins with INSERT, UPDATE, DELETE, MERGE, WITH, SELECT or CALL"
_READS_WORDS = "one query that begins with SELECT, WITH or VALUES"
_NAME_WORDS = "the name of a database on the operator's list"

DatabaseName = Annotated[
    str, Field(pattern=_NAME, max_length=32, json_schema_extra={"x-must-be": _NAME_WORDS}, examples=["shop"])
]
Parameters = Annotated[list[JsonValue], Field(max_length=100)]


class Check(Model):
    """A query that reads what the statement changed. It holds when it answers with one row of one column: true."""

    query: Annotated[str, _statement(_READS, _READS_WORDS)]
    parameters: Parameters = Field(default=[])


class SqlArguments(Model):
    """One statement, with `$1`, `$2` … for the parameters.

    Texts are bound without a type, so that the statement gives them one (`$1::date`, or a column's); objects and lists
    are bound as jsonb. With `expect_rows`, any other number of rows is rolled back.
    """

    database: DatabaseName
    statement: Annotated[str, _statement(_CHANGES, _CHANGES_WORDS)]
    parameters: Parameters = Field(default=[])
    expect_rows: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    check: Check | None = None
