"""A letter as an e-mail, sent through Django's mailer within a total deadline."""

from __future__ import annotations

import smtplib
import socket
import threading
from contextlib import suppress
from email.utils import parseaddr
from typing import Any

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, mailers
from django.core.mail.backends.smtp import EmailBackend
from django.template.loader import render_to_string

from approvals.notifying.letters import Letter
from approvals.notifying.outbox import Delivered, NotDelivered
from workers.notices.defanged import defanged, one_line

REFUSED_FOR_GOOD = range(500, 600)


def send(letter: Letter, address: str) -> Delivered | NotDelivered:
    """Sends the letter to one address. What the server says about this message for good is not tried again."""
    try:
        mailers.default.send_messages([message(letter, address)])
    except smtplib.SMTPRecipientsRefused as error:
        return _refused("the address was refused", *next(iter(error.recipients.values())))
    except smtplib.SMTPDataError as error:
        return _refused("the mail was refused", error.smtp_code, error.smtp_error)
    except ValueError as error:
        return NotDelivered(f"the address cannot be used: {error}", permanent=True, destination_down=False)
    except (smtplib.SMTPException, OSError) as error:
        return NotDelivered(f"the mail server: {type(error).__name__}: {error}")
    return Delivered()


def _refused(what: str, code: int, words: bytes | str) -> NotDelivered:
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    return NotDelivered(f"{what}: {code} {text}", permanent=code in REFUSED_FOR_GOOD, destination_down=False)


def message(letter: Letter, address: str) -> EmailMultiAlternatives:
    """The mail. Its Message-ID is made from the notice's id, so that a second copy is known as one."""
    facts = [(label, one_line(value)) for label, value in letter.facts]
    quotes = [(label, defanged(words)) for label, words in letter.quotes]
    context = {"letter": letter, "facts": facts, "quotes": quotes}
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    made = EmailMultiAlternatives(
        subject=f"[Checkpoint] {letter.subject}",
        body=_plain(letter, facts, quotes),
        to=[address],
        headers={
            "Message-ID": f"<notice.{letter.id}@{domain}>",
            "References": f"<about.{letter.thread}@{domain}>",
            "Auto-Submitted": "auto-generated",  # RFC 3834: no out-of-office answers
        },
    )
    made.attach_alternative(render_to_string("notice_mail.html", context), "text/html")
    return made


def _plain(letter: Letter, facts: list[tuple[str, str]], quotes: list[tuple[str, str]]) -> str:
    parts = [letter.opening, "\n".join(f"{label}: {value}" for label, value in facts)]
    for label, words in quotes:
        parts.append(f"{label}:\n" + "\n".join(f"> {line}" for line in words.split("\n")))
    parts.append(f"{letter.link_words} (you are asked to sign in):\n{letter.link}")
    parts.append(f"-- \n{letter.why} What you are told, and when: {letter.settings_link}")
    return "\n\n".join(parts) + "\n"


class DeadlineEmailBackend(EmailBackend):
    """Django's SMTP backend, with `timeout` (seconds) for the whole exchange and not only for each wait.

    A server that keeps sending a little would otherwise hold a sender for as long as it likes.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines: list[socket.socket] = []

    @property
    def connection_class(self) -> Any:
        """smtplib's class, keeping a second hold on each connection that it makes."""
        bases = (smtplib.SMTP_SSL, _Held) if self.use_ssl else (_Held,)
        return type("Connection", bases, {"lines": self._lines})

    def send_messages(self, email_messages: Any) -> int:
        """Raises OSError or SMTPException when the time is over, like any other broken connection."""
        watch = threading.Timer(self.timeout or 0, self._cut)
        watch.daemon = True
        watch.start()
        try:
            return int(super().send_messages(email_messages))
        finally:
            watch.cancel()
            while self._lines:
                self._lines.pop().close()

    def close(self) -> None:
        """Says goodbye; whether the server hears it changes nothing about a mail that it took."""
        with suppress(smtplib.SMTPException, OSError):
            super().close()

    def _cut(self) -> None:
        for line in list(self._lines):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)  # whoever reads or writes there wakes up with an error


class _Held(smtplib.SMTP):
    lines: list[socket.socket]

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """A duplicate outlives STARTTLS, which takes the socket itself away, and is there before TLS is agreed on."""
        made: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]
        self.lines.append(made.dup())
        return made
