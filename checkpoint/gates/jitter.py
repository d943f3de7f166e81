"""Chance that can be computed again: the spread of waits. Plain Python."""

from __future__ import annotations

import hashlib
import uuid

_RANGE = 2**32


def share_of(step_id: uuid.UUID, attempt: int) -> float:
    """Which share of the longest wait this step waits after this attempt: above 0 and at most 1, evenly spread.

    Whoever computes it gets the same, so a wait can be explained and a simulation repeated.
    """
    digest = hashlib.sha256(step_id.bytes + attempt.to_bytes(8)).digest()
    return (int.from_bytes(digest[:4]) + 1) / _RANGE
