"""`make load`: submissions a second over HTTP while things go wrong, and the proof that none is lost or doubled.

An open loop: requests are due at fixed times, whether or not earlier ones were answered, so that a slow server shows as
a queue and not as fewer requests. Some clients send every request twice at once, some hang up before the answer and
come again, and in the middle one web process is killed with SIGKILL. Whoever got no answer repeats the request under
its Idempotency-Key, as docs/api.md says. At the end the database is counted.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from bench.__main__ import database
from bench.submitter import Answer, Submitter, document
from checkpoint.config.environment import BASE_DIR

RATE = float(os.environ.get("LOAD_RATE", "200"))
SECONDS = float(os.environ.get("LOAD_SECONDS", "60"))
WEB_PROCESSES = int(os.environ.get("LOAD_WEB_PROCESSES", "2"))
CLIENTS = 64
TWICE_EVERY, HANG_UP_EVERY = 50, 37


@dataclass
class Load:
    """What is to be sent, and what came of it."""

    port: int
    token: str
    due: queue.Queue[tuple[int, float] | None] = field(default_factory=queue.Queue)
    answers: list[Answer] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def client(self) -> None:
        """Sends what is due until there is no more."""
        submitter = Submitter(self.port, self.token)
        while (job := self.due.get()) is not None:
            number, at = job
            try:
                self.answers.append(submitter.submit(number, due=at, hang_up=number % HANG_UP_EVERY == 0))
            except Exception as error:  # one that ends silently would hide a lost request
                self.problems.append(f"request {number}: {error!r}")

    def feed(self, *, kill_at: float, kill: int) -> None:
        """Makes requests due at their times, and kills one web process on the way."""
        began = time.monotonic()
        for number in range(int(RATE * SECONDS)):
            at = began + number / RATE
            time.sleep(max(at - time.monotonic(), 0.0))
            for _ in range(2 if number % TWICE_EVERY == 0 else 1):
                self.due.put((number, at))
            if kill and time.monotonic() - began > kill_at:
                os.kill(kill, signal.SIGKILL)
                kill = 0


@contextmanager
def web(env: dict[str, str]) -> Iterator[tuple[int, int]]:
    """The shipped web server; gives its port and the process id of one of its processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "checkpoint.config.asgi:application", "--port", str(port)]
    command += ["--workers", str(WEB_PROCESSES), "--lifespan", "off", "--no-access-log", "--log-level", "warning"]
    server = subprocess.Popen(command, cwd=BASE_DIR, env=env)
    try:
        yield port, _a_child(server.pid, port)
    finally:
        server.terminate()
        server.wait(30)


def _a_child(parent: int, port: int) -> int:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True)
    return next(int(line.split()[0]) for line in children.stdout.splitlines() if "spawn_main" in line)


def run(port: int, child: int, token: str) -> Load:
    """The whole load; returns when every request has its answer."""
    load = Load(port, token)
    clients = [threading.Thread(target=load.client) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    load.feed(kill_at=SECONDS / 2, kill=child)
    for _ in clients:
        load.due.put(None)
    for client in clients:
        client.join()
    return load


def prepare(env: dict[str, str]) -> str:
    """Publishes the tool; returns a token."""
    command = [sys.executable, "-m", "bench.prepare"]
    return subprocess.run(command, cwd=BASE_DIR, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> int:
    """Runs everything, prints the figures, and returns 1 where anything was lost or doubled."""
    with database() as (addresses, env):
        env |= {"CHECKPOINT_API_RATE": "1000000/minute", "CHECKPOINT_DATABASE_POOL": "12", "PYTHONPATH": str(BASE_DIR)}
        token = prepare(env)
        with web(env) as (port, child):
            load = run(port, child, token)
        with psycopg.connect(addresses.superuser) as connection:
            stored = connection.execute("SELECT id::text, goal FROM checkpoint_workflow").fetchall()
    return judge(load, {str(one): str(goal) for one, goal in stored})


def judge(load: Load, stored: dict[str, str]) -> int:
    """Holds what was answered against what is stored."""
    promised = {answer.workflow: document(answer.number)["goal"] for answer in load.answers}
    wanted = int(RATE * SECONDS)
    lost = [one for one, goal in promised.items() if stored.get(one) != goal]
    doubled = len(stored) - len(set(stored.values()))
    latencies = sorted(answer.seconds for answer in load.answers)
    late = sorted(answer.late for answer in load.answers)
    figures = {
        "submissions due": wanted,
        "workflows stored": len(stored),
        "promised and not stored": len(lost),
        "stored twice": doubled,
        "never answered": len(load.problems) + wanted - len(set(promised.values())),
        "answered after 30 s and more": sum(seconds > 30 for seconds in latencies),
        "sendings beyond the first": sum(answer.sent - 1 for answer in load.answers),
        "median seconds from send to answer": statistics.median(latencies),
        "p99 seconds from send to answer": latencies[int(len(latencies) * 0.99)],
        "p99 seconds behind the time due": late[int(len(late) * 0.99)],
    }
    for name, value in figures.items():
        print(f"{name:40} {value:10.3f}" if isinstance(value, float) else f"{name:40} {value:6d}")
    print(json.dumps(figures))
    print(*load.problems[:5], sep="\n")
    wrong = lost or doubled or load.problems or len(stored) != wanted
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
