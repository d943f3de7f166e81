"""Which boot of which machine this is."""

from __future__ import annotations

import functools
import socket
import time
from pathlib import Path

from workers.registry import boot_time

_LINUX = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def boot_id() -> str:
    """The kernel's own id of this boot; where it has none, the host's name and the start of its boot clock."""
    if _LINUX.exists():
        return _LINUX.read_text(encoding="ascii").strip()
    return f"{socket.gethostname()[:40]}-{round(time.time() - boot_time())}"
