"""The floor: what any engine with two durable commits a step could reach here. Raw psycopg, ten connections."""

from __future__ import annotations

import threading
import time

import psycopg

CONNECTIONS = 10


def steps_per_second(url: str, seconds: float) -> float:
    """Steps a second with two single-row commits each, on ten connections at once."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bench_floor")
        connection.execute("CREATE TABLE bench_floor (id int PRIMARY KEY, status text, version int)")
        connection.execute("INSERT INTO bench_floor SELECT n, 'prepared', 0 FROM generate_series(1, 10) AS n")
    counts = [0] * CONNECTIONS
    ends = time.monotonic() + seconds
    threads = [threading.Thread(target=_work, args=(url, row, counts, ends)) for row in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def _work(url: str, row: int, counts: list[int], ends: float) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        while time.monotonic() < ends:
            for status in ("started", "verified"):
                connection.execute(
                    "UPDATE bench_floor SET status = %s, version = version + 1 WHERE id = %s", [status, row + 1]
                )
            counts[row] += 1
