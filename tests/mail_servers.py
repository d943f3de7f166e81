"""A real SMTP server with bad days (aiosmtpd), and a real IMAP server (pymap) that keeps what the first one took."""

from __future__ import annotations

import asyncio
import imaplib
import ipaddress
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from typing import Any, Protocol

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.sandbox_driver import wait_for

USER, PASSWORD = "demouser", "demopass"  # pymap's own
# Its 500,000 rounds over a password take a second each time.
_PYMAP = """
import sys
from pymap.main import main
from pysasl.hashing import BuiltinHash
BuiltinHash.__init__.__kwdefaults__["rounds"] = 1
sys.argv[0] = "pymap"
main()
"""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Keeper(Protocol):
    """Where a mail server keeps what it took."""

    def keep(self, content: bytes) -> None:
        """Puts a copy there."""


@dataclass
class SentFolder:
    """The folder "Sent" of a running IMAP server."""

    port: int

    def __enter__(self) -> SentFolder:
        options = ["--no-tls", "--no-service", "admin", "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PYMAP, *options, "dict", "--demo-data"], stderr=subprocess.DEVNULL
        )
        try:
            wait_for(self._answers, 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def keep(self, content: bytes) -> None:
        """Puts a copy into the folder."""
        with imaplib.IMAP4("127.0.0.1", self.port) as mailbox:
            mailbox.login(USER, PASSWORD)
            assert mailbox.append("Sent", "", "", content)[0] == "OK"

    def entry(self, **more: Any) -> dict[str, Any]:
        """How an operator writes it."""
        login = {"username": USER, "secret": "MAIL_PASSWORD"}
        return {"host": "127.0.0.1", "port": self.port, "security": "none", **login, **more}

    def _answers(self) -> bool | None:
        try:
            imaplib.IMAP4("127.0.0.1", self.port).shutdown()
        except OSError:
            return None
        return True


@dataclass
class MailServer:
    """Takes every mail unless it is told otherwise.

    Attributes:
        taken: mails that it took, with their recipients.
        answers: what it says instead to "MAIL", "DATA", "." or an address; None hangs up.
        taken_first: takes the mail before it gives its answer to ".".
        kept_in: where it keeps what it took.
    """

    port: int = 0
    taken: list[tuple[list[str], bytes]] = field(default_factory=list)
    answers: dict[str, str | None] = field(default_factory=dict)
    taken_first: bool = True
    kept_in: Keeper | None = None

    async def handle_MAIL(  # noqa: N802 (aiosmtpd's name)
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Takes or refuses a sender."""
        envelope.mail_from = address
        return self._answer(server, "MAIL", "250 OK")

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Takes or refuses a recipient."""
        answer = self._answer(server, address, "250 OK")
        if answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Called once the end of the mail has come."""
        assert isinstance(envelope.content, bytes)
        if self.taken_first:
            self.taken.append((list(envelope.rcpt_tos), envelope.content))
            if self.kept_in:
                self.kept_in.keep(envelope.content)
        return self._answer(server, ".", "250 2.0.0 Ok: queued as 4BFQ7x2z1")

    def mail(self) -> EmailMessage:
        """The only one that was taken."""
        ((_, content),) = self.taken
        return BytesParser(_class=EmailMessage, policy=default).parsebytes(content)

    def entry(self, **more: Any) -> dict[str, Any]:
        """How an operator writes an account on it."""
        server = {"host": "127.0.0.1", "port": self.port, "security": "none"}
        return {"name": "office", "sender": "agent@example.com", "settle_seconds": 0.3, **server, **more}

    def _answer(self, server: SMTP, to: str, otherwise: str) -> str:
        answer = self.answers.get(to, otherwise)
        if answer is None:
            hang_up(server)
        return answer or otherwise


def hang_up(server: SMTP) -> None:
    """Ends the connection without a word."""
    assert isinstance(server.transport, asyncio.WriteTransport)
    server.transport.abort()


class Refusing(SMTP):
    """aiosmtpd has no hook at DATA itself."""

    async def smtp_DATA(self, arg: str) -> None:  # noqa: N802
        """Refuses it, or hangs up, where it is told to."""
        answers = self.event_handler.answers
        if "DATA" not in answers:
            await super().smtp_DATA(arg)
        elif answers["DATA"] is None:
            hang_up(self)
        else:
            await self.push(answers["DATA"])


class _Controller(Controller):
    def factory(self) -> SMTP:
        return Refusing(self.handler, **self.SMTP_kwargs)


@contextmanager
def mail_server(
    *, port: int | None = None, implicit_tls: ssl.SSLContext | None = None, **options: Any
) -> Iterator[MailServer]:
    """A running server; options are aiosmtpd's."""
    server = MailServer(port or free_port())
    controller = _Controller(
        server, hostname="127.0.0.1", port=server.port, ssl_context=implicit_tls, ready_timeout=30, **options
    )
    controller.start()
    try:
        yield server
    finally:
        controller.stop()


@contextmanager
def sent_folder() -> Iterator[SentFolder]:
    """A running IMAP server."""
    with SentFolder(free_port()) as folder:
        yield folder


def password_checked(user: bytes, password: bytes) -> dict[str, Any]:
    """Options for a server that wants this user and password, and only over TLS."""

    def check(server: Any, session: Any, envelope: Any, mechanism: str, login: Any) -> AuthResult:
        return AuthResult(success=(login.login, login.password) == (user, password), handled=False)

    return {"authenticator": check, "auth_required": True}


@dataclass
class Certificate:
    """A certificate for 127.0.0.1 that only who has `file` trusts."""

    file: Path
    context: ssl.SSLContext


def certificate(folder: Path) -> Certificate:
    """Makes one."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "certificate.pem", folder / "key.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(*form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return Certificate(public, context)
