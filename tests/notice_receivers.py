"""Real receivers of notices on loopback: a mail server, one that hangs, and a receiver of webhooks."""

from __future__ import annotations

import email.policy
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings


@dataclass
class MailServer:
    """An SMTP server that keeps what it gets; `refusing` maps addresses to the answer that they get instead."""

    port: int
    mails: list[EmailMessage] = field(default_factory=list)
    refusing: dict[str, str] = field(default_factory=dict)

    async def handle_RCPT(  # noqa: N802 (aiosmtpd's name)
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Takes or refuses an address."""
        if address in self.refusing:
            return self.refusing[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Keeps the mail."""
        assert isinstance(envelope.content, bytes)
        self.mails.append(BytesParser(_class=EmailMessage, policy=email.policy.default).parsebytes(envelope.content))
        return "250 taken"

    def to(self, person: User) -> list[EmailMessage]:
        """What a person got."""
        return [mail for mail in self.mails if mail["To"] == person.email]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def mailers(port: int, seconds: float = 20.0) -> dict[str, Any]:
    """Django's MAILERS for a server on loopback."""
    options = {"host": "127.0.0.1", "port": port, "timeout": seconds}
    return {"default": {"BACKEND": "workers.notices.mail.DeadlineEmailBackend", "OPTIONS": options}}


@pytest.fixture
def mail_server(settings: Settings) -> Iterator[MailServer]:
    """A mail server that this process's mailer sends to."""
    server = MailServer(free_port())
    controller = Controller(server, hostname="127.0.0.1", port=server.port)
    controller.start()
    settings.MAILERS = mailers(server.port)
    yield server
    controller.stop()


@dataclass
class SilentServer:
    """Takes connections and says nothing, or says `drip` again and again and never comes to an end."""

    port: int
    connected: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)

    def serve(self, listening: socket.socket, drip: bytes) -> None:
        """Until `closing`."""
        taken = []
        listening.settimeout(0.05)
        while not self.closing.is_set():
            try:
                taken.append(listening.accept()[0])
                self.connected.set()
            except TimeoutError:
                pass
            for line in taken if drip else []:
                try:
                    line.sendall(drip)
                except OSError:
                    taken.remove(line)
        for line in taken:
            line.close()


@contextmanager
def silent_server(drip: bytes = b"") -> Iterator[SilentServer]:
    """A server that hangs, for as long as the block runs."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = SilentServer(listening.getsockname()[1])
        thread = threading.Thread(target=server.serve, args=(listening, drip))
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            thread.join()


@dataclass
class Received:
    """One request that a webhook receiver got."""

    path: str
    headers: dict[str, str]
    content: bytes

    @property
    def value(self) -> Any:
        """The content as JSON."""
        return json.loads(self.content)


@dataclass
class Receiver:
    """A webhook receiver; `answers` are used up one by one, then everything is taken."""

    host: str = ""
    received: list[Received] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    """An HTTP receiver on loopback, which the operator has allowed."""
    kept = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            kept.received.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, content))
            status, headers = kept.answers.pop(0) if kept.answers else (200, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept.host = f"127.0.0.1:{server.server_address[1]}"
    settings.CHECKPOINT_PRIVATE_WEBHOOK_HOSTS = [kept.host]
    yield kept
    server.shutdown()
    server.server_close()
