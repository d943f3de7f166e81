"""A migrated PostgreSQL cluster, kept between runs: migrating takes longer than most test files.

It is found by a hash over everything that migrations read, so a changed migration, law or model makes a new one. On a
machine that has none, nothing is different but the time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from checkpoint.config.embedded_postgres import Server
from checkpoint.config.environment import BASE_DIR

MOST_KEPT = 8
# Migrations, what they import, and what Django itself puts into the tables after them.
_READ = (
    "*/migrations/*.py", "*/models/*.py", "*/*states.py", "*/bulk/*.py", "checkpoint/*laws.py", "checkpoint/clock.py",
    "checkpoint/config/*.py", "deploy/roles.sql", "requirements.txt", "tests/flush.py", "tests/kept_cluster.py",
)  # fmt: skip


def restore(folder: Path) -> bool:
    """Puts the kept cluster into the folder of a server that has not started; False where there is none."""
    kept = _place()
    if not kept.exists():
        return False
    with suppress(OSError):
        os.utime(kept)
    shutil.copytree(kept, folder)
    return True


def keep(server: Server) -> None:
    """Keeps what the running server has, which stops and starts for it. Of two at the same time one is kept."""
    server.stop()
    kept = _place()
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=kept.parent, prefix="draft-"))
    shutil.copytree(server.folder, draft, dirs_exist_ok=True)
    try:
        draft.rename(kept)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
    server.start()
    _prune(kept.parent)


def _place() -> Path:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _READ for path in BASE_DIR.glob(pattern)):
        digest.update(f"{path.relative_to(BASE_DIR)}\n".encode() + path.read_bytes())
    return Path(tempfile.gettempdir()) / f"checkpoint-tests-kept-{os.getuid()}" / digest.hexdigest()[:20]


def _prune(folder: Path) -> None:
    """Keeps those that were used last."""
    by_use = sorted(folder.glob("[!d]*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_use[MOST_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
