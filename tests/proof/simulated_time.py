"""Database time that stands still until a simulation moves it, for the connection that asks."""

from __future__ import annotations

from datetime import datetime

import psycopg
from django.db import connection

from tests.proof.moved_time import BODY

_MOVED = "SELECT coalesce(nullif(current_setting(''tests.now'', true), '''')::timestamptz, clock_timestamp())"


def install(owner_url: str) -> None:
    """From now on a connection that was told a time reads that; every other one reads the clock."""
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(f"{BODY} '{_MOVED}'")


def tell(now: datetime) -> None:
    """What time it is, for this thread's connection. Call it outside of transactions."""
    connection.ensure_connection()
    connection.connection.execute("SELECT set_config('tests.now', %s, false)", [now.isoformat()])
