"""Real receivers of notices on loopback, and people who are to be told: nothing of ours is replaced."""

from __future__ import annotations

import email.policy
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from approvals.models import Notice, NoticeChannel
from approvals.notice_rules import ChannelFormat, NoticeKind
from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import Contract, Variant
from checkpoint.models import Case, Team, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt
from checkpoint.plan_steps import PublishedTool
from checkpoint.tool_versions import Declaration, newest_tools
from checkpoint.workflows import submit
from tests import factories
from tests.journal_driver import KEYED, OPAQUE, JournalDriver, effect
from tests.submissions import ACTOR, INVOICE_SCHEMA, document, plan_of, published

SENDER_SECONDS = 60


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


def channel(receiver: Receiver, format: ChannelFormat = ChannelFormat.SLACK, **fields: Any) -> NoticeChannel:
    """A channel of all teams that leads to the receiver and takes questions."""
    secret_name = "TEAM_HOOK" if format is ChannelFormat.STANDARD else ""
    return NoticeChannel.objects.create(
        **{
            "name": f"channel {NoticeChannel.objects.count() + 1}",
            "format": format.value,
            "url": f"http://{receiver.host}/hook",
            "secret_name": secret_name,
            "kinds": [NoticeKind.ASKED.value],
            **fields,
        }
    )


def default_team() -> Team:
    """The team that `requested` submits for."""
    return Team.objects.get(slug="default")


def person(name: str, *, groups: tuple[str, ...] = (), team: Team | None = None, address: bool = True) -> User:
    """Somebody in the default team, with an e-mail address."""
    made = factories.person(name, groups=groups, teams=[team or default_team()])
    made.email = f"{name}@example.com" if address else ""
    made.save(update_fields=["email"])
    return made


def approver(name: str) -> User:
    """Somebody who may decide in the default team."""
    return person(name, groups=("Approver",))


def requested(by: User | None = None, *, contract: Contract = OPAQUE, **members: Any) -> Workflow:
    """A workflow of one step, submitted by a person, or by the machine's operator."""
    tools = _tools(contract)
    plan = plan_of(document(effect(), **members), tools)
    return submit(plan, team=default_team(), actor=ACTOR, user=by)


def _tools(contract: Contract) -> dict[str, PublishedTool]:
    published(Declaration("effect", "1", "An effect.", INVOICE_SCHEMA, (Variant("only", contract),)))
    return newest_tools()


def asked(by: User | None = None, **members: Any) -> Case:
    """A case that the engine opened: an answer never came, and the tool cannot be asked."""
    workflow, worker = requested(by, **members), JournalDriver()
    worker.report(worker.claim(), OutcomeUnknown("the connection broke"))
    return Case.objects.get(workflow=workflow)


def completed(by: User | None = None) -> Workflow:
    """A workflow that ran to its end."""
    workflow, worker = requested(by, contract=KEYED), JournalDriver()
    worker.report(worker.claim(), Receipt(operation_id="op_1"))
    workflow.refresh_from_db()
    return workflow


def told(kind: NoticeKind | None = None) -> dict[str, str]:
    """The state of each notice, of one kind or of all, by the recipient's name."""
    found = Notice.objects.select_related("person", "channel")
    chosen = found.filter(kind=kind) if kind else found
    return {notice.person.username if notice.person else str(notice.channel): notice.state for notice in chosen}


def sender_process(folder: Path, port: int, **env: str) -> subprocess.Popen[bytes]:
    """A sender of its own, which runs one round."""
    code = "import django; django.setup(); from workers.notices import sender; sender.run_round()"
    ours = {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(port), "DJANGO_SETTINGS_MODULE": "checkpoint.config.settings"}
    with (folder / "sender.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", code], cwd=BASE_DIR, env={**os.environ, **ours, **env}, stdout=log, stderr=log
        )
