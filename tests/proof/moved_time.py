"""Database time that any process of a proof can move on; production's SQL reads it as it is."""

from __future__ import annotations

from datetime import datetime, timedelta

import psycopg

BODY = "CREATE OR REPLACE FUNCTION checkpoint_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS "
_MARGIN = timedelta(milliseconds=20)


def move_to(moment: datetime, owner_url: str) -> None:
    """From now on it is at least that late; time never goes back."""
    with psycopg.connect(owner_url, autocommit=True) as owner:
        row = owner.execute(
            "SELECT extract(epoch FROM greatest(%s, checkpoint_now()) - clock_timestamp())", [moment + _MARGIN]
        ).fetchone()
        assert row is not None
        owner.execute(f"{BODY} 'SELECT clock_timestamp() + make_interval(secs => {row[0]})'")


def restore(owner_url: str) -> None:
    """Back to the clock."""
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(f"{BODY} 'SELECT clock_timestamp()'")
