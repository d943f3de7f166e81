"""The mail server: takes every message, writes it into the ledger before it answers, and sends nothing on."""

from __future__ import annotations

import asyncio
import re
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from workers.sandbox.ledger import Body, Ledger
from workers.sandbox.providers import MAIL

LARGEST = 10 * 1024 * 1024  # bytes of one message
SHOWN = 10_000  # characters of a text that the ledger keeps

# Who wants a message to be found again puts its key before the "@".
_MESSAGE_ID = re.compile(r"<?([^<>@\s]{1,200})@[^<>@\s]*>?")


class MailServer(Controller):
    """Listens on loopback, on a thread of its own; port 0 is any free one, and `port` the one that it became."""

    def __init__(self, port: int, ledger: Ledger) -> None:
        super().__init__(_Handler(ledger), hostname="127.0.0.1", port=port, data_size_limit=LARGEST, ready_timeout=30)

    def _trigger_server(self) -> None:
        """aiosmtpd greets itself once, on the port that it was given, which 0 is not."""
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # the library has no types there


class _Handler:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 (its name)
        """Called once the end of a message has come."""
        assert isinstance(envelope.content, bytes)
        message = BytesParser(_class=EmailMessage, policy=default).parsebytes(envelope.content)
        found = _MESSAGE_ID.fullmatch(str(message["Message-ID"] or "").strip())
        body = _shown(message, envelope.rcpt_tos)
        effect = self._ledger.add(MAIL.prefix, MAIL.kind, key=found and found[1], reference=None, body=body)
        return f"250 2.0.0 Ok: queued as {effect.number}"


def _shown(message: EmailMessage, recipients: list[str]) -> Body:
    """What a mailbox shows of it."""
    text = message.get_body(("plain", "html"))
    return {
        "message_id": str(message["Message-ID"] or "").strip("<> "),
        "from": str(message["From"] or ""),
        "to": _addresses(message, "To"),
        "cc": _addresses(message, "Cc"),
        "recipients": recipients,
        "subject": str(message["Subject"] or ""),
        "text": str(text.get_content())[:SHOWN] if text else "",
        "attachments": [part.get_filename() or "" for part in message.iter_attachments()],
    }


def _addresses(message: EmailMessage, header: str) -> list[str]:
    return [address.addr_spec for address in message[header].addresses] if message[header] else []
