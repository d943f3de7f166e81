"""Who opens a transaction: public verbs open exactly one, helpers demand one, pages and tasks open none."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.db import OperationalError, connection, transaction
from psycopg_pool import PoolTimeout


def one_transaction[**P, R](verb: Callable[P, R]) -> Callable[P, R]:
    """Marks a public verb: it runs in one transaction of its own and commits on return.

    `durable` refuses to run inside another transaction, so that a verb's commit is a commit.
    """

    @wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with transaction.atomic(durable=True):
            return verb(*args, **kwargs)

    return run


def one_snapshot[**P, R](reading: Callable[P, R]) -> Callable[P, R]:
    """Marks a reading of many rows: it sees all of them as they were at one moment, and holds nobody up."""

    @wraps(reading)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with transaction.atomic(durable=True):
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return reading(*args, **kwargs)

    return run


def require_transaction() -> None:
    """Raises unless a transaction is open. Helpers that write call this first."""
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "this helper writes and must be called inside a verb's transaction"
        )


def no_connection_free(error: BaseException | None) -> bool:
    """Whether a web process had more requests at once than its connections could serve: nothing was done."""
    return isinstance(error, OperationalError) and isinstance(error.__cause__, PoolTimeout)
