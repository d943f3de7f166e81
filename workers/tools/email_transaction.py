"""One SMTP transaction (RFC 5321). It ends accepted, or surely not accepted, or nobody knows.

What proves that nothing was sent: until the line that ends the message has gone out, a server that loses the connection
must drop the transaction (section 4.1.1.10, and 4.1.1.4 on what ends a message). After it, a reply of 4xx or 5xx says
that the server did not take the message (section 4.2.5). 421 is left out: a server, or a proxy before it, may say that
to any command when it closes the connection, so that it speaks of the connection and not of the message.
"""

from __future__ import annotations

import re
import smtplib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from socket import socket
from typing import Any

from checkpoint.outcomes import NotApplied, Unanswered
from workers.tools.email_accounts import Account
from workers.tools.held_lines import Lines
from workers.tools.secrets import Secrets

CLOSING = 421
LONGEST_REPLY = 500  # characters that are kept

# How mail servers name the message that they took: Postfix, Exim, sendmail, and hosted services that say "Ok <id>".
_QUEUE_IDS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bqueued as ([\w.-]{1,100})",
        r"\bid=([\w.-]{1,100})",
        r"([\w.-]{6,100}) message accepted",
        r"\bok:? ([\w.-]*\d[\w.-]{5,100})",
    )
]


class OutcomeUnknown(Unanswered):
    """The end of the message went out, and no reply says what became of it."""


@dataclass(frozen=True)
class Accepted:
    """What the server said when it took the message."""

    reply: str
    queue_id: str | None


class Session(smtplib.SMTP):
    """A connection to the account's server, greeted and logged in.

    Attributes:
        ended: True from just before the line that ends the message.
    """

    def __init__(self, account: Account, secrets: Secrets, lines: Lines) -> None:
        self.ended = False
        self._account, self._lines = account, lines
        # The usual local name would be looked up in the DNS, for as long as that takes.
        super().__init__(account.host, account.port, "localhost", timeout=max(lines.deadline.remaining(), 0.001))
        self._name_itself()
        if account.security == "starttls":
            self.starttls(context=account.tls())
        if account.secret:
            self.login(account.username, secrets.value(account.secret))

    def _get_socket(self, host: str, port: int, timeout: float) -> socket:
        return self._lines.connect(host, port, self._account.tls() if self._account.security == "tls" else None)

    def _name_itself(self) -> None:
        """By its address, as RFC 5321 section 4.1.1.1 has it for a client without a name of its own."""
        assert self.sock
        address = self.sock.getsockname()[0]
        self.local_hostname = f"[IPv6:{address}]" if ":" in address else f"[{address}]"
        self.ehlo_or_helo_if_needed()


def transact(
    account: Account,
    secrets: Secrets,
    lines: Lines,
    *,
    recipients: list[str],
    content: bytes,
    sending: Callable[[], None],
    answered: Callable[[Accepted], None],
) -> Accepted:
    """Sends the message to all recipients or to none.

    `sending` is called just before it takes effect, `answered` once it did, before the connection is given up.

    Raises:
        NotApplied: it was not sent to anybody.
        OutcomeUnknown: it may have been.
    """
    session: Session | None = None
    try:
        session = Session(account, secrets, lines)
        _address(session, account.sender, recipients, len(content))
        accepted = _hand_over(session, content, sending)
        answered(accepted)
        return accepted
    except NotApplied:
        raise
    except Exception as error:
        # What decides is not the kind of error but whether the end of the message had gone out.
        if session and session.ended:
            raise OutcomeUnknown(
                f"the message went out to {account.host} and no reply came: {_words(error)}. It may have been taken"
            ) from None
        raise NotApplied(f"nothing was sent over {account.host}: {_words(error)}", code="never_sent") from None
    finally:
        if session:
            _leave(session)


def _address(session: Session, sender: str, recipients: list[str], size: int) -> None:
    _expect(session.mail(sender, [f"SIZE={size}"] if session.has_extn("size") else []), "the sender was refused")
    refused = {address: reply for address in recipients if not _ok(reply := session.rcpt(address))}
    if refused:
        with suppress(smtplib.SMTPException, OSError):
            session.rset()
        said = "; ".join(f"{address}: {_text(reply)}" for address, reply in refused.items())
        raise NotApplied(
            f"nothing was sent: {len(refused)} of {len(recipients)} recipients were refused, so nobody gets it: {said}",
            code="recipients_refused",
            permanent=any(code >= 500 for code, _ in refused.values()),
        )


def _hand_over(session: Session, content: bytes, sending: Callable[[], None]) -> Accepted:
    code, words = session.docmd("DATA")
    if code != 354:
        _expect((code, words), "the message was refused", proof=code >= 400)
    session.send(_dots_doubled(content))
    sending()
    session.ended = True
    session.send(b".\r\n")
    reply = session.getreply()
    if not _ok(reply):
        _expect(reply, "the message was refused", proof=400 <= reply[0] < 600 and reply[0] != CLOSING)
    text = _text(reply)
    return Accepted(text, next((match[1] for one in _QUEUE_IDS if (match := one.search(text))), None))


def _expect(reply: tuple[int, bytes], what: str, *, proof: bool = True) -> None:
    if _ok(reply):
        return
    if not proof:
        raise smtplib.SMTPException(f"the server answered {_text(reply)}")
    raise NotApplied(f"nothing was sent: {what}: {_text(reply)}", code=f"reply_{reply[0]}", permanent=reply[0] >= 500)


def _ok(reply: tuple[int, Any]) -> bool:
    return 200 <= reply[0] < 300


def _dots_doubled(content: bytes) -> bytes:
    """RFC 5321 section 4.5.2: a line that begins with a dot gets another, so that none is taken for the end."""
    return re.sub(rb"(?m)^\.", b"..", content)


def _leave(session: Session) -> None:
    """Says goodbye and does not wait for a word: the receipt matters more, and nothing depends on it."""
    with suppress(smtplib.SMTPException, OSError):
        session.putcmd("quit")
    session.close()


def _text(reply: tuple[int, bytes]) -> str:
    return f"{reply[0]} {' '.join(reply[1].decode('utf-8', errors='replace').split())}"[:LONGEST_REPLY]


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
