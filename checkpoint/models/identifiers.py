"""Primary keys: UUID version 7 (RFC 9562), so that new rows sit together at the end of every index."""

from __future__ import annotations

import os
import threading
import time
import uuid

_guard = threading.Lock()
_newest = 0


def uuid7() -> uuid.UUID:
    """A new UUIDv7: 48 bits of Unix milliseconds, then 74 random bits; later than every earlier one of this process.

    Within one millisecond, and while the clock is set back, the last one is raised by a random step (RFC 9562, 6.2,
    method 2): what is made in an order, the steps of a plan above all, keeps it.
    """
    global _newest  # noqa: PLW0603 (the order is the process's)
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    value = milliseconds << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    with _guard:
        if value <= _newest:
            value = _newest + 1 + (random & 0xFFFF_FFFF)
        _newest = value
    return uuid.UUID(int=value)
