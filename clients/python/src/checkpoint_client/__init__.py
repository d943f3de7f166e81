"""Durable steps for Python agents.

After a crash this is true: a step that was not begun has not run, and runs when the program runs again; a step that was
recorded is not run again, its result is returned; a step that was begun and not recorded is never run again by itself.
Then Checkpoint looks the effect up, lets it be sent again where its provider honours the key, or asks a person, and the
second run is told which.
"""

from checkpoint_client.async_client import AsyncAttempt, AsyncClient, AsyncRun
from checkpoint_client.attempts import Attempt, Receipt
from checkpoint_client.client import Client, Run
from checkpoint_client.errors import (
    CheckpointError,
    NotApplied,
    NotBegun,
    NotRecorded,
    Refused,
    Unreachable,
    Waiting,
)

__all__ = [
    "AsyncAttempt",
    "AsyncClient",
    "AsyncRun",
    "Attempt",
    "CheckpointError",
    "Client",
    "NotApplied",
    "NotBegun",
    "NotRecorded",
    "Receipt",
    "Refused",
    "Run",
    "Unreachable",
    "Waiting",
]
