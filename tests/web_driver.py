"""The web application as uvicorn serves it, on a free port of the loopback interface, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

START_SECONDS = 20.0


@contextmanager
def serve() -> Iterator[str]:
    """Its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        "checkpoint.config.asgi:application", log_level="warning", lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    ends = time.monotonic() + START_SECONDS
    while not server.started:
        assert thread.is_alive(), "uvicorn ended"
        assert time.monotonic() < ends, "uvicorn did not start in time"
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(START_SECONDS)


@pytest.fixture(scope="session")
def web_server(django_db_setup: None) -> Iterator[str]:
    """One for all tests of a process."""
    with serve() as address:
        yield address


def nobody_follows() -> bool:
    """No stream of events is open: the thread that looks for them has ended, and with it its connection."""
    return not any(thread.name == "following" for thread in threading.enumerate())
