"""What the simulations of one process share, and ids and time that follow from a seed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import psycopg
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Max

from checkpoint.contracts import Variant
from checkpoint.doorbell import rung
from checkpoint.gates import jitter
from checkpoint.models import Team, WorkerProcess, identifiers
from checkpoint.people import Actor
from checkpoint.planning.plan_steps import PublishedTool
from checkpoint.tool_versions import Declaration, newest_tools, publish_tools
from checkpoint.turns import verdicts
from tests.proof import simulated_time
from tests.proof.lanes import Lanes
from tests.proof.simulated_provider import CONTRACTS, seconds
from workers import doorbell

ACTOR = Actor(name="simulation", channel="command")
BEGIN = datetime(2031, 1, 1, tzinfo=UTC)
RANDOM_BITS = 2**80 - 1  # of a UUID version 7
BETWEEN = 100_000.0  # seconds between the beginnings of two histories


class Stage:
    """What simulations share: the published tools, a person, the connection whose session locks are the workers' lives.

    Each simulation begins later than all before it, so that nothing of theirs is due, or has the same ids.
    """

    def __init__(self, owner_url: str) -> None:
        simulated_time.install(owner_url)
        newest = WorkerProcess.objects.aggregate(Max("started_at"))["started_at__max"]
        self._begin = max(BEGIN, newest + seconds(BETWEEN)) if newest else BEGIN
        simulated_time.tell(self._begin)
        rung.disconnect(doorbell.send)
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
        publish_tools(
            [Declaration(name, "1", name, schema, (Variant("only", made),)) for name, made in CONTRACTS.items()],
            actor=ACTOR,
        )
        self.tools: dict[str, PublishedTool] = newest_tools()
        self.team = Team.objects.get(slug="default")
        self.person = User.objects.filter(is_superuser=True).first() or User.objects.create_superuser("person")
        self.locks: psycopg.Connection[Any] = psycopg.connect(
            connection.connection.info.dsn, password=connection.connection.info.password, autocommit=True
        )
        self.lanes = Lanes(self.locks)
        self.played = 0

    def close(self) -> None:
        """Lets everything go."""
        self.lanes.close()
        self.locks.close()

    @contextmanager
    def seeded_ids(self, rng: Random) -> Iterator[datetime]:
        """Ids follow from the seed, too: rows are locked and worked on in their order. Yields the beginning of time.

        Their first 48 bits tell the time and differ from one play of a seed to the next, so no wait may depend on them.
        """
        self.played += 1
        begin = self._begin + seconds(self.played * BETWEEN)
        milliseconds = int(begin.timestamp() * 1000)
        seams: Any = identifiers
        waits: Any = verdicts
        originals = seams.os, seams.time, seams._newest, waits.share_of
        seams._newest = 0
        seams.os = SimpleNamespace(urandom=rng.randbytes)
        seams.time = SimpleNamespace(time_ns=lambda: milliseconds * 1_000_000)
        waits.share_of = lambda step, attempt: jitter.share_of(uuid.UUID(int=step.int & RANDOM_BITS), attempt)
        try:
            yield begin
        finally:
            seams.os, seams.time, seams._newest, waits.share_of = originals
