"""The worker processes of a simulation: they start, act, die, are stopped; two turns of theirs overlap."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

from checkpoint import journal, leases
from checkpoint.models import WorkerProcess, identifiers
from tests.proof.simulated_provider import seconds
from tests.proof.simulated_worker import SimulatedWorker
from tests.proof.simulated_world import World

Turn = Callable[[], list[Any]]


class Crew:
    """Every worker process of one history. A crash needs no exception: what was not committed did not happen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng
        self.workers: list[SimulatedWorker] = []

    def start(self) -> None:
        """A new process under a fresh id; its clock is wrong."""
        identifier = identifiers.uuid7()
        worker = SimulatedWorker(identifier, _lock_key(identifier), seconds(self.rng.uniform(-3600, 3600)))
        self.world.stage.locks.execute("SELECT pg_advisory_lock(%s)", [worker.lock_key])
        leases.register(
            WorkerProcess(
                id=worker.id, lock_key=worker.lock_key, host="simulated", boot_id="boot", pid=1,
                tools=sorted(worker.worker.tools),
            )
        )  # fmt: skip
        self.workers.append(worker)

    def kill_one(self) -> None:
        """What its hands were doing is lost; what they sent is not."""
        if self.workers:
            self._die(self.rng.choice(self.workers))

    def stop_one(self) -> None:
        """SIGSTOP, for less or more than a lease."""
        if self.workers:
            self.rng.choice(self.workers).stopped_until = self.world.now + seconds(self.rng.choice([1, 5, 20, 40]))

    def heal(self) -> None:
        """Nobody is stopped any more, and no bell is on its way."""
        self.world.bells = []
        for worker in self.workers:
            worker.stopped_until = None

    def end(self) -> None:
        """Every process ends."""
        while self.workers:
            self._die(self.workers[-1])

    def act(self) -> None:
        """Every running process does what it does: hands, heartbeat, sweeper, the loop."""
        if len(self.workers) < 2:
            self.start()
        self._hear_bells()
        if self.world.faulty and self.rng.random() < 0.3:
            self.sweep()
        for worker in self._running():
            worker.work(self.world.provider, self.world.now)
            self._beat(worker)
            if worker in self.workers and (worker.bell or worker.finished(self.world.now)):
                self._loop(worker)

    def sweep(self) -> None:
        """The sweeper's turn, on whichever process gets the message."""
        if self.rng.random() < 0.5:
            leases.end_dead_processes()
            leases.wake_workflows_left_alone()
        if leases.anything_due():
            self.world.ring()

    def two_turns_at_once(self) -> None:
        """Two workers' transactions overlap: the second runs in the middle of the first."""
        able = self._running()
        if len(able) < 2:
            return
        first, second = self.rng.sample(able, 2)
        told = []
        for worker in (first, second):
            worker.work(self.world.provider, self.world.now)
            told.append(worker.finished(self.world.now))
        turns = [self._turn(worker, reports) for worker, reports in zip((first, second), told, strict=True)]
        results = self.world.stage.lanes.overlap(*turns, after=self.rng.randint(1, 12))
        self.world.after_turn()
        for worker, reports, result in zip((first, second), told, results, strict=True):
            if isinstance(result, Exception):
                self.world.failed(result)
            else:
                self._after_turn(worker, reports, result)

    def _loop(self, worker: SimulatedWorker) -> None:
        """One turn of its loop. It may die just before the commit, just after, or hear nothing of the commit."""
        fate = self.rng.random() if self.world.faulty else 1.0
        if fate < 0.02:
            self._die(worker)
            return
        reports = worker.finished(self.world.now)
        if fate < 0.04:
            self._take_turn(worker, reports)  # the commit's answer is lost: the loop runs its verb again
        claims = self._take_turn(worker, reports)
        if fate > 0.98 and self.world.faulty:
            self._die(worker)
            return
        self._after_turn(worker, reports, claims)

    def _turn(self, worker: SimulatedWorker, reports: list[Any]) -> Turn:
        """To be run by any thread."""

        def turn() -> list[Any]:
            self.world.tell()
            free = worker.free_hands() + len(reports)
            return journal.take_turn(reports, worker=worker.worker, hands=free)

        return turn

    def _take_turn(self, worker: SimulatedWorker, reports: list[Any]) -> list[Any]:
        try:
            return self._turn(worker, reports)()
        except Exception as error:
            self.world.failed(error)
            return []
        finally:
            self.world.after_turn()

    def _after_turn(self, worker: SimulatedWorker, reports: list[Any], claims: list[Any]) -> None:
        worker.forget(reports)
        worker.take(claims, self.world.now, self.rng)
        worker.bell = bool(claims) or bool(worker.flights)

    def _beat(self, worker: SimulatedWorker) -> None:
        if worker.is_overdue(self.world.now):
            self._die(worker)
            return
        if worker.beat_at is not None and self.world.now < worker.beat_at:
            return
        worker.beat_at = self.world.now + seconds(5 * (0.5 + self.rng.random()))
        if worker.flights and self.rng.random() < 0.8:
            leases.renew(worker.holdings(), holder=worker.id)

    def _die(self, worker: SimulatedWorker) -> None:
        self.workers.remove(worker)
        self.world.stage.locks.execute("SELECT pg_advisory_unlock(%s)", [worker.lock_key])

    def _running(self) -> list[SimulatedWorker]:
        return [worker for worker in self.workers if worker.runs(self.world.now)]

    def _hear_bells(self) -> None:
        now: datetime = self.world.now
        arrived = [bell for bell in self.world.bells if bell <= now]
        self.world.bells = [bell for bell in self.world.bells if bell > now]
        for _ in arrived:
            if running := self._running():
                self.rng.choice(running).bell = True


def _lock_key(identifier: uuid.UUID) -> int:
    """Also for the same seed another one each time."""
    return int.from_bytes(hashlib.sha256(identifier.bytes).digest()[:7])
