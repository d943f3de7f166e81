"""Moves the database's time: `checkpoint_now()` is replaced on the real server, so production SQL runs as it is."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from checkpoint.config.embedded_postgres import Addresses

_BODY = "CREATE OR REPLACE FUNCTION checkpoint_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS "


class MovableTime:
    """Database time, ahead of the clock by what was passed."""

    def __init__(self, owner_url: str) -> None:
        self._owner = psycopg.connect(owner_url, autocommit=True)
        self._ahead = 0.0

    def pass_seconds(self, seconds: float) -> None:
        """From now on it is so much later."""
        self._ahead += seconds
        self._owner.execute(f"{_BODY} 'SELECT clock_timestamp() + make_interval(secs => {self._ahead})'")

    def restore(self) -> None:
        """Back to the clock."""
        self._owner.execute(f"{_BODY} 'SELECT clock_timestamp()'")
        self._owner.close()


@pytest.fixture
def time_machine(database: Addresses) -> Iterator[MovableTime]:
    """Time that a test can let pass."""
    movable = MovableTime(database.owner)
    yield movable
    movable.restore()
