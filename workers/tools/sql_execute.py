"""`sql.execute`: one statement in a foreign PostgreSQL, committed together with a marker row that bears the key.

Recovery. The marker (sql_effects.py) is there exactly when the effect is. Nothing takes effect before COMMIT is sent,
so whatever fails before it is proof that nothing happened. Only a COMMIT without an answer leaves that open, and then
the marker tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from checkpoint.canonical import canonical
from checkpoint.contracts import Variant
from checkpoint.crash_points import reach
from checkpoint.errors import ValueNotCanonical
from checkpoint.outcomes import (
    Absent,
    Found,
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Pending,
    Receipt,
    Unanswered,
    Verification,
    Visible,
)
from workers.registry import Call, Deadline
from workers.tools import sql_databases, sql_effects
from workers.tools.secrets import Secrets
from workers.tools.sql_arguments import Check, SqlArguments
from workers.tools.sql_databases import SETTING, Database, Databases
from workers.tools.sql_effects import Marker
from workers.tools.sql_session import Connection, begin, run, session
from workers.tools.sql_values import as_json

LARGEST_RETURNED = 8 * 1024  # bytes of canonical JSON
MOST_RETURNED = 100  # rows

_LOOKUP_LOCK_SECONDS = 1.0
_NO_MARKERS = ("42P01", "3F000", "42501")  # undefined table, invalid schema, insufficient privilege
# Classes of SQLSTATE that the same statement meets again: features, cardinality, data, integrity, names and syntax.
_HOPELESS = ("0A", "21", "22", "23", "42")


class CommitUnanswered(Unanswered):
    """COMMIT was sent, and no answer told whether it took effect."""


class SqlExecute:
    """One instance serves all calls; each has a connection of its own."""

    name = "sql.execute"
    version = "1"
    summary = "Runs one statement in a PostgreSQL database on the operator's list"
    reports_sending = True
    Arguments = SqlArguments

    def __init__(self, databases: Databases | None = None, secrets: Secrets | None = None) -> None:
        self._given = databases
        self._secrets = secrets or Secrets()

    def variants(self) -> Sequence[Variant]:
        """One contract a database on the list."""
        return self._databases().variants()

    def execute(self, arguments: SqlArguments, call: Call) -> Receipt:
        """Marker, statement and COMMIT in one foreign transaction; under a key that is marked already, nothing.

        Raises:
            NotApplied: it failed before COMMIT was sent, or the server answered that it rolled back.
            CommitUnanswered: no answer to COMMIT.
        """
        with self._telling("nothing was changed"), self._session(arguments, call.deadline) as connection:
            begin(connection, call.deadline)
            marker = _marked(connection, arguments, call)
            if marker.done_at is None:
                marker = self._run(connection, arguments, call)
                reach("sql.execute/before_commit", call.step_name)
                call.sending()  # nothing before COMMIT can take effect
                _commit(connection)
                call.answered(marker.receipt(arguments))
                reach("sql.execute/committed", call.step_name)
        return marker.receipt(arguments)

    def inspect(self, arguments: SqlArguments, call: Call) -> Inspection:
        """Reads the marker under its lock, and leaves the present fence there, so that absence stays true."""
        try:
            with self._telling("the lookup failed"), self._session(arguments, call.deadline) as connection:
                return _look_up(connection, arguments, call)
        except (NotApplied, CommitUnanswered) as error:
            return Inconclusive(str(error))

    def verify(self, arguments: SqlArguments, call: Call) -> Verification:
        """Reads the committed marker on another connection, then runs the arguments' check, which can only read."""
        try:
            with self._telling("reading failed"), self._session(arguments, call.deadline) as connection:
                begin(connection, call.deadline, reads=True)
                marker = sql_effects.read(connection, call.key)
                if marker is None or marker.done_at is None:
                    return NotVisible("the database has no marker of this effect")
                if arguments.check is not None and (fault := _check_fault(connection, arguments.check)):
                    return NotVisible(fault, marker.receipt(arguments).facts)
                return Visible(marker.receipt(arguments).facts)
        except (NotApplied, CommitUnanswered) as error:
            return NotVisible(str(error))

    def _databases(self) -> Databases:
        return self._given or sql_databases.load()

    @contextmanager
    def _session(self, arguments: SqlArguments, deadline: Deadline) -> Iterator[Connection]:
        database = self._database(arguments.database)
        password = None if database.password is None else self._secrets.value(database.password)
        deadline.check_before_send()
        with session(database, password, deadline) as connection:
            yield connection

    def _database(self, name: str) -> Database:
        if database := self._databases().get(name):
            return database
        raise NotApplied(f"the database {name} is not on the list of {SETTING}", code="unlisted", permanent=True)

    def _run(self, connection: Connection, arguments: SqlArguments, call: Call) -> Marker:
        largest = self._database(arguments.database).largest_row_count
        count, rows = run(connection, arguments.statement, arguments.parameters, largest=largest)
        returned = self._secrets.redact([as_json(row) for row in rows])
        _check_rows(count, returned, largest, arguments.expect_rows)
        marker = sql_effects.complete(connection, call, row_count=max(count, 0), returned=returned)
        if marker is None:
            raise NotApplied("the statement touched its own marker", code="marker_touched", permanent=True)
        return marker

    @contextmanager
    def _telling(self, failed: str) -> Iterator[None]:
        """Says what an error means; no message leaves with a secret in it."""
        try:
            yield
        except NotApplied as error:
            message = self._secrets.redact(f"{failed}: {error}")
            raise NotApplied(message, code=error.code, permanent=error.permanent) from None
        except CommitUnanswered as error:
            raise CommitUnanswered(self._secrets.redact(str(error))) from None
        except psycopg.Error as error:
            raise _not_applied(error, f"{failed}: {self._secrets.redact(_words(error))}") from None


def _marked(connection: Connection, arguments: SqlArguments, call: Call) -> Marker:
    """The key's row, locked, under the call's own fence."""
    try:
        marker = sql_effects.touch(connection, arguments, call)
    except psycopg.Error as error:
        if error.sqlstate in _NO_MARKERS:
            hint = "the marker table is missing or closed to this role; deploy/effect_markers.sql makes it"
            raise NotApplied(f"{hint} ({_words(error)})", code="no_markers", permanent=True) from None
        raise
    if marker.done_at is None and marker.fence > call.fence:
        raise NotApplied("a later lookup under this key has already answered that it is absent", code="old_fence")
    return marker


def _check_rows(count: int, returned: list[Any], largest: int, expected: int | None) -> None:
    """Raises before anything is committed where the statement did more, or returned more, than it may."""
    if count > largest:
        said = f"the statement concerns more than {largest} rows, the limit for this database"
        raise NotApplied(said, code="too_many_rows", permanent=True)
    if expected is not None and count != expected:
        said = f"the statement concerns {count} rows, expected were {expected}"
        raise NotApplied(said, code="unexpected_rows", permanent=True)
    try:
        size = len(canonical(returned).encode())
    except ValueNotCanonical as error:
        raise NotApplied(f"what it returned cannot be kept: {error}", code="unkeepable", permanent=True) from None
    if len(returned) > MOST_RETURNED or size > LARGEST_RETURNED:
        said = f"it returned {len(returned)} rows of {size} bytes; {MOST_RETURNED} of {LARGEST_RETURNED} can be kept"
        raise NotApplied(said, code="unkeepable", permanent=True)


def _commit(connection: Connection) -> None:
    try:
        answer = connection.execute("COMMIT").statusmessage
    except psycopg.Error as error:
        # ERROR ends a transaction without its effects. FATAL, PANIC and a lost connection can come after them.
        if error.diag.severity_nonlocalized == "ERROR" and error.sqlstate != "40003":
            raise
        raise CommitUnanswered(f"COMMIT was sent, and its answer did not come: {_words(error)}") from None
    if answer != "COMMIT":
        raise NotApplied(f"the server answered COMMIT with {answer}", code="rolled_back")


def _look_up(connection: Connection, arguments: SqlArguments, call: Call) -> Inspection:
    begin(connection, call.deadline, lock_seconds=_LOOKUP_LOCK_SECONDS)
    try:
        marker = sql_effects.touch(connection, arguments, call)
    except psycopg.errors.LockNotAvailable:
        return Pending({"message": "a transaction under this key has not ended yet"})
    if marker.done_at is not None:
        return Found(marker.receipt(arguments))
    # Absence is an answer only once the fence is on disk: from then on no older call can commit.
    _commit(connection)
    return Absent()


def _check_fault(connection: Connection, check: Check) -> str:
    """Why the check does not hold; empty where it does."""
    count, rows = run(connection, check.query, check.parameters, largest=1)
    values = list(rows[0].values()) if count == 1 else []
    return "" if values == [True] else "the check did not answer with one row of one column that is true"


def _not_applied(error: psycopg.Error, message: str) -> NotApplied:
    """Before COMMIT every failure is proof: a transaction that is not committed leaves nothing."""
    state = error.sqlstate or ""
    return NotApplied(message, code=f"sqlstate_{state}" if state else "no_connection", permanent=state[:2] in _HOPELESS)


def _words(error: psycopg.Error) -> str:
    """The server's sentence on one line, without the text of the statement that libpq puts below it."""
    first = error.diag.message_primary or str(error)
    return " ".join(f"{first} ({error.sqlstate})".split() if error.sqlstate else first.split())[:500]
