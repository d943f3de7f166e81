"""Primary keys: UUID version 7 (RFC 9562), so that new rows sit together at the end of every index."""

from __future__ import annotations

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    """A new UUIDv7: 48 bits of Unix milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    value = milliseconds << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)
