"""`make bench`: verified steps a second beside a raw psycopg floor, commits and WAL a step, latency, memory.

Everything runs on one embedded PostgreSQL with its production settings (fsync on), in one run, so that the ratios hold
on any machine. Figures in seconds are of this machine and this moment only.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bench import floor
from checkpoint.config.embedded_postgres import Addresses, Server
from checkpoint.config.environment import BASE_DIR

WORKFLOWS = int(os.environ.get("BENCH_WORKFLOWS", "1000"))
STEPS = 10
LONE = 20
HANDS = 64
FLOOR_SECONDS = 5.0


class BenchWorker:
    """A worker process that works when it is told to."""

    def __init__(self, env: dict[str, str]) -> None:
        command = [sys.executable, "-m", "bench.worker", str(HANDS)]
        self.process = subprocess.Popen(
            command, cwd=BASE_DIR, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._line()

    def work(self) -> dict[str, Any]:
        """Runs until nothing is ready."""
        assert self.process.stdin
        print("go", file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def end(self) -> None:
        """Ends it in good order."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(30)

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()


@contextmanager
def database() -> Iterator[tuple[Addresses, dict[str, str]]]:
    """A fresh server with migrated tables, and the environment in which processes find it."""
    with tempfile.TemporaryDirectory(prefix="checkpoint-bench-") as folder:
        server = Server(Path(folder) / "postgres", fsync=True)
        addresses = server.start()
        env = {
            **os.environ,
            "DATABASE_URL": addresses.app,
            "DATABASE_OWNER_URL": addresses.owner,
            "DATABASE_DIRECT_URL": addresses.app,
            "DJANGO_SETTINGS_MODULE": "checkpoint.config.settings",
            "CHECKPOINT_HOME": folder,
        }
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=BASE_DIR, env={**env, "CHECKPOINT_AS_OWNER": "1"}, check=True)
        try:
            yield addresses, env
        finally:
            server.stop()


def counters(url: str) -> tuple[int, int]:
    """Commits of the database and bytes of WAL so far."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        row = connection.execute(
            "SELECT xact_commit, pg_current_wal_lsn() - '0/0'::pg_lsn FROM pg_stat_database"
            " WHERE datname = current_database()"
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])


def submit(env: dict[str, str], workflows: int) -> None:
    """Submits workflows of ten steps."""
    subprocess.run(
        [sys.executable, "-m", "bench.submit", str(workflows), str(STEPS)], cwd=BASE_DIR, env=env, check=True
    )


def measured(url: str, worker: BenchWorker, env: dict[str, str], workflows: int) -> dict[str, float]:
    """Figures of one run of the worker over so many workflows."""
    submit(env, workflows)
    commits, wal = counters(url)
    used = worker.work()
    commits_after, wal_after = counters(url)
    steps = workflows * STEPS
    return {
        "steps_per_second": steps / used["seconds"],
        "commits_per_step": (commits_after - commits) / steps,
        "wal_bytes_per_step": (wal_after - wal) / steps,
        "worker_cpu_share": used["cpu_seconds"] / used["seconds"],
        "milliseconds_per_workflow": 1000 * used["seconds"] / workflows,
        "peak_memory_mib": used["peak_memory_mib"],
    }


def main() -> None:
    """Runs everything and prints a table, then the same as JSON."""
    with database() as (addresses, env):
        before = floor.steps_per_second(addresses.superuser, FLOOR_SECONDS)
        worker = BenchWorker(env)
        measured(addresses.superuser, worker, env, 20)
        lone = [measured(addresses.superuser, worker, env, 1) for _ in range(LONE)]
        load = measured(addresses.superuser, worker, env, WORKFLOWS)
        worker.end()
        after = floor.steps_per_second(addresses.superuser, FLOOR_SECONDS)
    the_floor = (before + after) / 2
    report(
        {
            "floor steps/s (10 connections, 2 commits a step)": the_floor,
            "verified steps/s, one worker process": load["steps_per_second"],
            "ratio to the floor": load["steps_per_second"] / the_floor,
            "commits a step under load": load["commits_per_step"],
            "WAL bytes a step under load": load["wal_bytes_per_step"],
            "worker's CPU share under load": load["worker_cpu_share"],
            "worker's peak memory, MiB": load["peak_memory_mib"],
            "commits a step of a lone workflow": statistics.median(run["commits_per_step"] for run in lone),
            "WAL bytes a step of a lone workflow": statistics.median(run["wal_bytes_per_step"] for run in lone),
            "milliseconds a lone workflow of ten steps": statistics.median(
                run["milliseconds_per_workflow"] for run in lone
            ),
        }
    )


def report(figures: dict[str, float]) -> None:
    """A table for people, a line of JSON for programs."""
    for name, value in figures.items():
        print(f"{name:52} {value:10.2f}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
