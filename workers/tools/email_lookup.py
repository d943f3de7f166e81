"""Looking a message up by its Message-ID: in the sent folder over IMAP (RFC 9051), or over HTTP."""

from __future__ import annotations

import imaplib
from collections.abc import Sequence
from contextlib import suppress
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from socket import socket
from typing import Any

from checkpoint.outcomes import Absent, Facts, Found, Inspection, Receipt
from workers.registry import Call
from workers.tools import http_providers
from workers.tools.email_accounts import Account, SentFolder
from workers.tools.email_arguments import EmailArguments
from workers.tools.held_lines import Lines, held_until
from workers.tools.http_arguments import Lookup
from workers.tools.http_exchange import Exchange
from workers.tools.http_reading import HttpReading, values_of
from workers.tools.secrets import Secrets


class LookupFailed(Exception):
    """The folder gave no usable answer."""


class Mailbox(imaplib.IMAP4):
    """A connection to the folder's server, logged in."""

    def __init__(self, server: SentFolder, secrets: Secrets, lines: Lines) -> None:
        self._server, self._lines = server, lines
        super().__init__(server.host, server.port)
        if server.security == "starttls":
            self.starttls(server.tls())
        if server.secret:
            self.login(server.username, secrets.value(server.secret))

    def _create_socket(self, timeout: float | None) -> socket:
        return self._lines.connect(self.host, self.port, self._server.tls() if self._server.security == "tls" else None)


def look_up(account: Account, arguments: EmailArguments, call: Call, secrets: Secrets) -> Inspection:
    """Asks where the account can be asked.

    Raises:
        Exception: it could not be asked; that says nothing about the message.
    """
    if account.lookup:
        return _over_http(account.lookup, account, arguments, call, secrets)
    assert account.sent_folder, "the contract has no lookup"
    with held_until(call.deadline) as lines:
        return _in_folder(account.sent_folder, lines, account.message_id(call.key), arguments, secrets)


def _over_http(lookup: Lookup, account: Account, arguments: EmailArguments, call: Call, secrets: Secrets) -> Inspection:
    exchange = Exchange(http_providers.load(), secrets, call.deadline)
    sent = {**arguments.model_dump(mode="json"), "message_id": account.message_id(call.key)}
    return HttpReading(exchange, secrets.redact, sent, values_of(call)).look_up(lookup)


def _in_folder(
    server: SentFolder, lines: Lines, message_id: str, arguments: EmailArguments, secrets: Secrets
) -> Inspection:
    mailbox = Mailbox(server, secrets, lines)
    try:
        _ok(mailbox.select(f'"{server.folder}"', readonly=True))
        numbers = (_ok(mailbox.uid("SEARCH", "HEADER", "Message-ID", f'"<{message_id}>"'))[0] or b"").split()
        facts: Facts = {"message_id": message_id, "folder": server.folder, "copies": len(numbers)}
        if not numbers:
            return Absent(facts)
        headers = _headers(_ok(mailbox.uid("FETCH", numbers[0].decode(), "(BODY.PEEK[HEADER])")))
        return Found(Receipt(message_id, facts, arguments_match=_match(headers, arguments)))
    finally:
        with suppress(OSError):
            mailbox.shutdown()


def _match(headers: EmailMessage, arguments: EmailArguments) -> bool:
    """What every server keeps as it was. A blind copy shows in no header."""
    there = {one.addr_spec.lower() for name in ("to", "cc") if headers[name] for one in headers[name].addresses}
    wanted = {address.lower() for address in (*arguments.to, *arguments.cc)}
    return there == wanted and str(headers["subject"]).split() == arguments.subject.split()


def _headers(fetched: Sequence[Any]) -> EmailMessage:
    text = next((part[1] for part in fetched if isinstance(part, tuple)), None)
    if text is None:
        raise LookupFailed("the folder found the message and did not show it")
    return BytesParser(_class=EmailMessage, policy=policy.default).parsebytes(text, headersonly=True)


def _ok(answer: tuple[str, list[Any]]) -> list[Any]:
    status, data = answer
    if status != "OK":
        raise LookupFailed(f"the folder's server answered {status}: {data!r}")
    return data
