"""Houses whose servers are started when the first subject needs them; what workers are told is fixed before."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Step
from tests import broker_driver, mail_servers, object_server
from tests.notice_receivers import free_port
from tests.proof.houses import BEFORE, WANTED, arguments_of, listed


@dataclass
class Mail:
    """`email.send`: the account `blind`, and `office`, whose sent folder can be asked."""

    folder: Path
    opened: ExitStack
    _smtp: int = field(default_factory=free_port)
    _imap: int = field(default_factory=free_port)

    def environment(self) -> dict[str, str]:
        """Two accounts on one server."""
        server = mail_servers.MailServer(self._smtp)
        sent = mail_servers.SentFolder(self._imap).entry()
        accounts = server.entry(name="office", sent_folder=sent), server.entry(name="blind")
        return {
            "CHECKPOINT_MAIL_ACCOUNTS": listed(self.folder / "accounts.toml", "account", *accounts),
            "CHECKPOINT_SECRET_MAIL_PASSWORD": mail_servers.PASSWORD,
        }

    @cached_property
    def ledger(self) -> Path:
        """Where it writes down what it took; the first who asks opens the house."""
        self.opened.enter_context(mail_servers.SentFolder(self._imap))
        ledger = self.folder / "mail.ledger"
        self.opened.enter_context(_process("tests.proof.mail_house", self._smtp, self._imap, ledger))
        ledger.touch()
        return ledger

    def open(self) -> None:
        """Before the first worker looks for it."""
        assert self.ledger.exists()

    def effects(self, step: Step) -> int:
        """Messages with the step's Message-ID."""
        return self.ledger.read_text().count(f"<{step.idempotency_key}@") if step.idempotency_key else 0


@contextmanager
def _process(module: str, *arguments: object) -> Iterator[None]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=BASE_DIR, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        assert process.stdout.readline() == "ready\n", f"{module} did not start"
        yield
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@dataclass
class Store:
    """`object.put` and `object.delete`: a versioned bucket."""

    folder: Path
    opened: ExitStack
    _port: int = field(default_factory=free_port)

    def environment(self) -> dict[str, str]:
        """The bucket's entry."""
        server = object_server.ObjectServer(f"http://127.0.0.1:{self._port}", None)
        entry = server.bucket("kept").model_dump(exclude_none=True)
        return {"CHECKPOINT_BUCKETS": listed(self.folder / "buckets.toml", "bucket", entry), **object_server.SECRETS}

    @cached_property
    def server(self) -> object_server.ObjectServer:
        """The first who asks opens the house."""
        serve = contextmanager(object_server.serve)
        folder = self.folder / "objects"
        folder.mkdir()
        return self.opened.enter_context(serve(folder, self._port))

    def open(self) -> None:
        """Before the first worker looks for it."""
        assert self.server.endpoint

    def put(self, key: str) -> str:
        """What was there before; returns its ETag."""
        stored = self.server.client.put_object(Bucket="kept-bucket", Key=key, Body=BEFORE.encode())
        return str(stored["ETag"]).strip('"')

    def effects(self, step: Step) -> int:
        """Versions of the object with the wanted content, or what marks it as deleted."""
        listed = self.server.client.list_object_versions(Bucket="kept-bucket", Prefix=arguments_of(step)["key"])
        if step.tool_version.name == "object.delete":
            return len(listed.get("DeleteMarkers", []))
        return sum(version["Size"] == len(WANTED) for version in listed.get("Versions", []))


@dataclass
class Events:
    """`outbox.publish`: a stream of Valkey and a queue of RabbitMQ."""

    folder: Path
    opened: ExitStack
    _stream: int = field(default_factory=free_port)
    _queue: int = field(default_factory=free_port)
    _taken: Counter[str] = field(default_factory=Counter)

    def environment(self) -> dict[str, str]:
        """The destinations `stream` and `queue`."""
        stream = {"name": "stream", "kind": "redis", "url": f"redis://127.0.0.1:{self._stream}/0"}
        queue = {"name": "queue", "kind": "rabbitmq", "url": f"amqp://shop@127.0.0.1:{self._queue}/"}
        destinations = (
            {**stream, "password": "BROKER", "stream": broker_driver.STREAM},
            {**queue, "password": "BROKER", "exchange": broker_driver.EXCHANGE, "routing_key": "order.paid"},
        )
        destinations_file = listed(self.folder / "destinations.toml", "destination", *destinations)
        return {"CHECKPOINT_OUTBOX_DESTINATIONS": destinations_file, "CHECKPOINT_SECRET_BROKER": broker_driver.PASSWORD}

    @cached_property
    def valkey(self) -> broker_driver.Valkey:
        """The first who asks opens it."""
        folder = self.folder / "valkey"
        folder.mkdir()
        return self.opened.enter_context(broker_driver.running_valkey(folder, self._stream))

    @cached_property
    def rabbitmq(self) -> broker_driver.RabbitMqServer:
        """The first who asks opens it."""
        folder = self.folder / "rabbitmq"
        folder.mkdir()
        return self.opened.enter_context(broker_driver.running_rabbitmq(folder, self._queue))

    def open(self, destination: str) -> None:
        """Before the first worker looks for it."""
        assert self.valkey.port if destination == "stream" else self.rabbitmq.port

    def effects(self, step: Step) -> int:
        """Entries of the stream with the step's key, or messages that ever were in the queue with it."""
        if arguments_of(step)["destination"] == "stream":
            return sum(entry["id"] == step.idempotency_key for _, entry in self.valkey.entries())
        while message := self.rabbitmq.take():
            self._taken[message.properties["message_id"]] += 1
        return self._taken[step.idempotency_key]
