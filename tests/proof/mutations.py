"""One safeguard taken out at a time, in tests only and each at one named seam, to show that the proofs notice.

Each is a function that changes this process; `restored` undoes all of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from checkpoint import decide
from checkpoint.gates import limiting
from checkpoint.rows import workflow_rows
from checkpoint.turns import intents, recording
from checkpoint.turns.calls import Claim, Report
from workers.engine import Engine
from workers.registry import Deadline

TakeOut = Callable[[], None]
LOCKS = ("_LOCK", "_LOCK_DUE")


def without_the_fence() -> None:
    """Every report counts as made under the present fence."""
    seam: Any = recording._Recorder
    seam.holds_fence = lambda self: True


def without_the_workflow_lock() -> None:
    """Workflows are read and not locked."""
    for name in LOCKS:
        statement, _, _ = getattr(workflow_rows, name).partition(" FOR UPDATE")
        setattr(workflow_rows, name, statement)


def without_the_settle_wait() -> None:
    """Nothing found is believed at once."""
    decide._quiet_at = lambda facts, contract: datetime.min.replace(tzinfo=UTC)


def without_limits() -> None:
    """Every step gets a place, and its time has always come."""
    seam: Any = limiting.Limiter
    seam._reason_to_hold = lambda self, row, tool, limits: None


def without_intents() -> None:
    """Whoever names an effect brings it about, whoever else does."""
    intents.proceed = lambda changes, row: True


def without_the_write_ahead_commit() -> None:
    """A call is made before the commit that claims it; what came of it is recorded as ever."""
    seam: Any = Engine
    record, call = seam._record, seam._call
    made: dict[tuple[uuid.UUID, int], Report] = {}

    def early(self: Any, reports: list[Report], free: int) -> Any:
        noted = self.flight.claim

        def claim_and_act(claims: Sequence[Claim]) -> None:
            noted(claims)
            for claim in claims:
                make = partial(call, self, claim, Deadline.after(claim.deadline))
                made[claim.step_id, claim.fence] = _in_a_hand(make)

        self.flight.claim = claim_and_act
        try:
            return record(self, reports, free)
        finally:
            self.flight.claim = noted

    seam._record = early
    seam._call = lambda self, claim, deadline: made.pop((claim.step_id, claim.fence))


def _in_a_hand(verb: Callable[[], Report]) -> Report:
    with ThreadPoolExecutor(1, thread_name_prefix="hand-") as hand:
        return hand.submit(verb).result()


@contextmanager
def restored() -> Iterator[None]:
    """Whatever is taken out inside is back in afterwards."""
    seams: list[tuple[Any, str]] = [(recording._Recorder, "holds_fence"), (decide, "_quiet_at")]
    seams += [(Engine, "_record"), (Engine, "_call"), (limiting.Limiter, "_reason_to_hold"), (intents, "proceed")]
    seams += [(workflow_rows, name) for name in LOCKS]
    originals = [getattr(owner, name) for owner, name in seams]
    try:
        yield
    finally:
        for (owner, name), original in zip(seams, originals, strict=True):
            setattr(owner, name, original)
