"""Connections that end at a deadline, whatever the other side does.

A timeout on a socket holds for each wait. A server that keeps sending a little would hold a caller for as long as it
likes.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from workers.registry import Deadline


@dataclass
class Lines:
    """The connections of one call."""

    deadline: Deadline
    _held: list[socket.socket] = field(default_factory=list)

    def connect(self, host: str, port: int, tls: ssl.SSLContext | None) -> socket.socket:
        """A connection to the host, with TLS from the first byte where a context is given.

        Raises:
            OSError: there is none within the deadline.
        """
        made = socket.create_connection((host, port), max(self.deadline.remaining(), 0.001))
        # A duplicate outlives STARTTLS, which takes the socket itself away, and is there before TLS is agreed on.
        self._held.append(made.dup())
        return tls.wrap_socket(made, server_hostname=host) if tls else made

    def cut(self) -> None:
        """Whoever reads or writes on one of them wakes up with an error."""
        for line in list(self._held):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Lets go of them."""
        while self._held:
            self._held.pop().close()


@contextmanager
def held_until(deadline: Deadline) -> Iterator[Lines]:
    """For as long as the block runs, at most until the deadline."""
    lines = Lines(deadline)
    watch = threading.Timer(max(deadline.remaining(), 0), lines.cut)
    watch.daemon = True
    watch.start()
    try:
        yield lines
    finally:
        watch.cancel()
        lines.cut()
        lines.close()
