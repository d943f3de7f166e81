"""`python -m tests.proof.mail_house SMTP_PORT IMAP_PORT LEDGER`: a mail server that writes down what it took.

It is a process of its own, so that a worker that is forked from the explorer shares nothing with it.
"""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from pathlib import Path

from tests.mail_servers import SentFolder, mail_server


@dataclass
class Ledger:
    """One line for each message that was taken: its Message-ID. A copy goes to the folder that can be asked."""

    file: Path
    sent: SentFolder

    def keep(self, content: bytes) -> None:
        """Called before the reply."""
        with self.file.open("a") as ledger:
            ledger.write(f"{BytesHeaderParser().parsebytes(content)['Message-ID']}\n")
        self.sent.keep(content)


def main(smtp_port: int, imap_port: int, ledger: Path) -> None:
    """Serves until it is ended."""
    with mail_server(port=smtp_port) as server:
        server.kept_in = Ledger(ledger, SentFolder(imap_port))
        print("ready", flush=True)
        signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
