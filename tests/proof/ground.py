"""A fresh PostgreSQL of its own for a proof that is run from the command line, as tests have theirs from a plugin."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checkpoint.config import environment
from checkpoint.config.embedded_postgres import Addresses, Server
from checkpoint.config.environment import BASE_DIR


@dataclass(frozen=True)
class Ground:
    """Where a proof runs."""

    folder: Path
    addresses: Addresses


@contextmanager
def prepared() -> Iterator[Ground]:
    """A migrated database, this process connected to it by the application's role, and Django set up."""
    with tempfile.TemporaryDirectory(prefix="checkpoint-proof-") as name:
        folder = Path(name)
        server = Server(folder / "postgres", fsync=False)
        addresses = server.start()
        try:
            os.environ.update(_environment(folder, addresses))
            migrate = [sys.executable, str(BASE_DIR / "manage.py"), "migrate", "--verbosity", "0"]
            subprocess.run(migrate, env={**os.environ, "CHECKPOINT_AS_OWNER": "1"}, check=True)
            environment.HOME = folder  # it was read before this process had a folder of its own
            import django

            django.setup()
            yield Ground(folder, addresses)
        finally:
            server.stop()


def _environment(folder: Path, addresses: Addresses) -> dict[str, str]:
    return {
        "CHECKPOINT_HOME": str(folder),
        "DATABASE_URL": addresses.app,
        "DATABASE_OWNER_URL": addresses.owner,
        "DATABASE_DIRECT_URL": addresses.app,
        "DJANGO_SETTINGS_MODULE": "checkpoint.config.settings",
    }
