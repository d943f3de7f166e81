"""One worker process without a queue: runs until nothing is ready, and prints what it used as one line of JSON."""

from __future__ import annotations

import json
import resource
import sys
import time

import django

django.setup()

from bench.noop import Noop  # noqa: E402
from workers import flight_recorder, publishing  # noqa: E402
from workers.engine import Engine  # noqa: E402
from workers.heartbeat import Heartbeat  # noqa: E402
from workers.registry import label  # noqa: E402


def main(hands: int) -> None:
    """Publishes the tool, waits for a line on standard input, works, reports."""
    tool = Noop()
    publishing.publish([tool])
    heartbeat = Heartbeat([label(tool)])
    worker = heartbeat.start()
    engine = Engine(worker, {tool.name: tool}, hands=hands, flight=flight_recorder.start(worker.id, hands=hands))
    heartbeat.watch(holdings=engine.holdings, overdue_at=engine.earliest_deadline)
    print("ready", flush=True)
    for _ in sys.stdin:
        began, cpu = time.monotonic(), time.process_time()
        calls = engine.run_until_idle()
        used = resource.getrusage(resource.RUSAGE_SELF)
        answer = {
            "seconds": time.monotonic() - began,
            "cpu_seconds": time.process_time() - cpu,
            "calls": calls,
            "peak_memory_mib": used.ru_maxrss / 1024,
        }
        print(json.dumps(answer), flush=True)
    heartbeat.stop()
    engine.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
