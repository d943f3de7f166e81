"""Database time. Only PostgreSQL's clock judges leases, deadlines and expiries.

All SQL reads time through `checkpoint_now()`: `clock_timestamp()` in production, movable in tests, so that a
simulation runs the production statements on the real server.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func


class Now(Func):
    """`checkpoint_now()` as an expression, for column defaults and queries."""

    function = "checkpoint_now"
    output_field = DateTimeField()


def now() -> datetime:
    """The database's time, read now. Inside a transaction, read it after the locks were taken."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT checkpoint_now()")
        moment: datetime = cursor.fetchone()[0]
        return moment
