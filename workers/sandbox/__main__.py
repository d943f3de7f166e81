"""`python -m workers.sandbox`: CHECKPOINT_SANDBOX_PORT (7180; 0 = any free one), CHECKPOINT_SANDBOX_MAIL_PORT (7125),
CHECKPOINT_SANDBOX_LEDGER.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.sandbox.ledger import Ledger
from workers.sandbox.mail import MailServer
from workers.sandbox.server import SandboxServer
from workers.sandbox.service import Service


def main() -> None:
    """Serves until SIGTERM or SIGINT."""
    home = os.environ.get("CHECKPOINT_HOME") or ".checkpoint"
    ledger = Ledger(Path(os.environ.get("CHECKPOINT_SANDBOX_LEDGER") or f"{home}/sandbox.jsonl"))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    with _port("CHECKPOINT_SANDBOX_PORT", "7180") as port:
        server = SandboxServer(port, Service(ledger))
    with _port("CHECKPOINT_SANDBOX_MAIL_PORT", "7125") as port:
        mail = MailServer(port, ledger)
        mail.start()
    print(
        f"sandbox takes mail on port {mail.port} and listens on http://127.0.0.1:{server.server_address[1]}", flush=True
    )
    server.serve_forever()


@contextmanager
def _port(variable: str, usual: str) -> Iterator[int]:
    """What is done with the port; where it cannot be used, one line says so."""
    given = os.environ.get(variable) or usual
    try:
        yield int(given)
    except (OSError, OverflowError, ValueError) as error:
        sys.exit(f"sandbox: port {given} cannot be used ({error}); set {variable} to a free one")


if __name__ == "__main__":
    main()
