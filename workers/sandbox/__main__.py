"""`python -m workers.sandbox`: CHECKPOINT_SANDBOX_PORT (7180; 0 = any free one), CHECKPOINT_SANDBOX_LEDGER."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from workers.sandbox.ledger import Ledger
from workers.sandbox.server import SandboxServer
from workers.sandbox.service import Service


def main() -> None:
    """Serves until SIGTERM or SIGINT."""
    home = os.environ.get("CHECKPOINT_HOME") or ".checkpoint"
    ledger = Ledger(Path(os.environ.get("CHECKPOINT_SANDBOX_LEDGER") or f"{home}/sandbox.jsonl"))
    port = os.environ.get("CHECKPOINT_SANDBOX_PORT") or "7180"
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        server = SandboxServer(int(port), Service(ledger))
    except (OSError, OverflowError, ValueError) as error:
        sys.exit(f"sandbox: port {port} cannot be used ({error}); set CHECKPOINT_SANDBOX_PORT to a free one")
    print(f"sandbox listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
