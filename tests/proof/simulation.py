"""Many workers on the real server under one seed: crashes, pauses, lost and doubled doorbells, and faulty providers.

Production's verbs run as they are. Time stands still while one of them runs and is moved between them; one scheduler
decides from one seed what happens next, so that a seed plays the same history again. A worker's crash needs no
exception: what it had not committed did not happen, and what its hands were doing is lost with it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Container, Sequence
from datetime import datetime
from random import Random
from typing import Any

from django.db.models import Min

from approvals.decisions import decide
from checkpoint import journal, leases, workflows
from checkpoint.documents import Document
from checkpoint.errors import AlreadyEnding
from checkpoint.models import Case, WorkerProcess, Workflow, identifiers
from checkpoint.plans import parse_plan
from checkpoint.states import CASE_RULES, CaseReason, CaseStatus, Decision
from tests.proof import simulated_time
from tests.proof.invariants import Violation, violations
from tests.proof.simulated_provider import CONTRACTS, Provider, seconds
from tests.proof.simulated_witness import SimulatedWitness
from tests.proof.simulated_worker import SimulatedWorker
from tests.proof.stage import ACTOR, Stage

FAULTY_ROUNDS, MOST_ROUNDS = 40, 400
QUICKEST_ROUND = seconds(0.5)
REPLAY = "python -m tests.proof.simulate --seed {seed}"


def simulate(stage: Stage, seed: int, tools: Sequence[str] = tuple(CONTRACTS)) -> list[Violation]:
    """Plays one seed, with steps of these tools; returns what was violated."""
    rng = Random(seed)
    with stage.seeded_ids(Random(rng.random())) as begin:
        history = Simulation(stage, rng, begin, tools)
        try:
            return history.play()
        finally:
            history.end()


class Simulation:
    """One history."""

    def __init__(self, stage: Stage, rng: Random, begin: datetime, tools: Sequence[str] = tuple(CONTRACTS)) -> None:
        self.stage = stage
        self.tools = tools
        self.rng = rng
        self.now = begin
        self.provider = Provider(Random(rng.random()))
        self.witness = SimulatedWitness(self.provider)
        self.workers: list[SimulatedWorker] = []
        self.bells: list[datetime] = []
        self.found: list[Violation] = []
        self.workflows: list[uuid.UUID] = []

    def play(self) -> list[Violation]:
        """Faults for a while, then everything is well and all has to come to its end."""
        self._tell()
        for _ in range(self.rng.randint(2, 4)):
            self.start_worker()
        for _ in range(self.rng.randint(1, 3)):
            self.submit()
        for _ in range(FAULTY_ROUNDS):
            self.round()
            if self.found:
                return self.found
        return self.come_to_the_end()

    def come_to_the_end(self) -> list[Violation]:
        """From now on nothing goes wrong, and everything has to come to its end; returns all that was violated."""
        self.heal()
        self._settle()
        return self.found + violations(self.workflows, self.witness, quiescent=True)

    def round(self) -> None:
        """A little time passes, something may go wrong, everybody who can acts."""
        self.pass_time(self.rng.choices([0.02, 0.2, 2.0, 20.0], [6, 5, 3, 1])[0] * self.rng.random())
        happening = self.rng.random()
        for limit, happens in (
            (0.03, self.kill_worker), (0.07, self.stop_worker), (0.09, self.submit), (0.10, self.abandon_workflow),
            (0.16, self.answer_a_question), (0.20, self.check), (0.30, self.two_turns_at_once),
        ):  # fmt: skip
            if happening < limit:
                happens()
                break
        self.act()

    def pass_time(self, amount: float) -> None:
        """Database time, and with it the world's."""
        self.now += seconds(amount)
        self._tell()
        self.provider.advance(self.now)

    def act(self) -> None:
        """Every running process does what it does: hands, heartbeat, sweeper, the loop."""
        if len(self.workers) < 2:
            self.start_worker()
        self._ring()
        if self.provider.faulty and self.rng.random() < 0.3:
            self.sweep()
        for worker in self._running():
            worker.work(self.provider, self.now)
            self._beat(worker)
            if worker in self.workers and (worker.bell or worker.finished(self.now)):
                self.turn(worker)

    def turn(self, worker: SimulatedWorker) -> None:
        """One turn of its loop. It may die just before the commit, just after, or hear nothing of the commit."""
        fate = self.rng.random() if self.provider.faulty else 1.0
        if fate < 0.02:
            self._die(worker)
            return
        reports = worker.finished(self.now)
        if fate < 0.04:
            self._turn(worker, reports)  # the commit's answer is lost: the loop runs its verb again
        claims = self._turn(worker, reports)
        if fate > 0.98 and self.provider.faulty:
            self._die(worker)
            return
        self._after_turn(worker, reports, claims)

    def two_turns_at_once(self) -> None:
        """Two workers' transactions overlap: the second runs in the middle of the first."""
        able = self._running()
        if len(able) < 2:
            return
        pair = self.rng.sample(able, 2)
        for worker in pair:
            worker.work(self.provider, self.now)
        told = [worker.finished(self.now) for worker in pair]

        def verb(number: int) -> Any:
            simulated_time.tell(self.now)
            free = pair[number].free_hands() + len(told[number])
            return journal.take_turn(told[number], worker=pair[number].worker, hands=free)

        results = self.stage.lanes.overlap(lambda: verb(0), lambda: verb(1), after=self.rng.randint(1, 12))
        for worker, reports, result in zip(pair, told, results, strict=True):
            if isinstance(result, Exception):
                self._failed(result)
            else:
                self.witness.see_new_cases(self.workflows, self.now)
                self._after_turn(worker, reports, result)

    def start_worker(self) -> None:
        """A new process under a fresh id; its clock is wrong."""
        identifier = identifiers.uuid7()
        worker = SimulatedWorker(identifier, _lock_key(identifier), seconds(self.rng.uniform(-3600, 3600)))
        self.stage.locks.execute("SELECT pg_advisory_lock(%s)", [worker.lock_key])
        leases.register(
            WorkerProcess(
                id=worker.id, lock_key=worker.lock_key, host="simulated", boot_id="boot", pid=1,
                tools=sorted(worker.worker.tools),
            )
        )  # fmt: skip
        self.workers.append(worker)

    def kill_worker(self) -> None:
        """What its hands were doing is lost; what they sent is not."""
        if self.workers:
            self._die(self.rng.choice(self.workers))

    def stop_worker(self) -> None:
        """SIGSTOP, for less or more than a lease."""
        if self.workers:
            self.rng.choice(self.workers).stopped_until = self.now + seconds(self.rng.choice([1, 5, 20, 40]))

    def submit(self) -> None:
        """A workflow of one to four steps, some of them side by side."""
        position, steps = 1, []
        for number in range(self.rng.randint(1, 4)):
            position += number > 0 and self.rng.random() < 0.6
            tool = self.rng.choice(self.tools)
            steps.append({"name": f"s{number}", "position": position, "tool": tool, "arguments": {"n": number}})
        document = {"goal": "Be simulated.", "kind": "proof", "prompt_version": "1", "steps": steps}
        plan = parse_plan(Document.of(document), self.stage.tools)
        self.workflows.append(workflows.submit(plan, team=self.stage.team, actor=ACTOR).pk)
        self._send_bell()

    def abandon_workflow(self) -> None:
        """The agent gives one up."""
        try:
            workflows.abandon(workflow_id=self.rng.choice(self.workflows), actor=ACTOR, reason="changed its mind")
        except AlreadyEnding:
            return

    def sweep(self) -> None:
        """The sweeper's turn, on whichever process gets the message."""
        if self.rng.random() < 0.5:
            leases.end_dead_processes()
            leases.wake_workflows_left_alone()
        if leases.anything_due():
            self._send_bell()

    def answer_a_question(self) -> None:
        """A person looks at the provider's ledger once nothing can land any more, and says what is there."""
        open_cases = Case.objects.filter(workflow__in=self.workflows, status=CaseStatus.OPEN).select_related("step")
        for case in open_cases.order_by("id"):
            if not self.witness.can_be_settled(case, self.workers, self.now):
                continue
            kind = _truthful(case, effects=self.witness.effects(case.step))
            decide(
                case_id=case.pk, kind=kind, person=self.stage.person, channel="command", reason="looked it up",
                step_version=case.step.version, arguments_hash=case.step.arguments_hash,
            )  # fmt: skip
            self._send_bell()
            return

    def check(self) -> None:
        """The laws hold at every moment."""
        self.found += violations(self.workflows, self.witness, quiescent=False)

    def heal(self) -> None:
        """From now on nothing goes wrong."""
        self.provider.faulty = False
        self.bells = []
        for worker in self.workers:
            worker.stopped_until = None

    def end(self) -> None:
        """Every process ends."""
        while self.workers:
            self._die(self.workers[-1])

    def _settle(self) -> None:
        if not self.workers:
            self.start_worker()
        leases.end_dead_processes()
        for _ in range(MOST_ROUNDS):
            if leases.anything_due():
                self.rng.choice(self.workers).bell = True
            self.act()
            upcoming = self._next_event()
            if self._unanswered():
                self.answer_a_question()
            elif upcoming is None:
                leases.wake_workflows_left_alone()
                if self._next_event() is None:
                    return
            if self.found:
                return
            self.pass_time((max(upcoming or self.now, self.now + QUICKEST_ROUND) - self.now).total_seconds())
        self.found.append(Violation("it_comes_to_rest", "simulation", f"not after {MOST_ROUNDS} rounds"))

    def _next_event(self) -> datetime | None:
        wakes = Workflow.objects.filter(pk__in=self.workflows).aggregate(Min("wake_at"))["wake_at__min"]
        hands = [worker.next_event() for worker in self.workers]
        return min(filter(None, [wakes, *hands, self.provider.next_landing()]), default=None)

    def _unanswered(self) -> bool:
        return Case.objects.filter(workflow__in=self.workflows, status=CaseStatus.OPEN).exists()

    def _turn(self, worker: SimulatedWorker, reports: list[Any]) -> list[Any]:
        try:
            free = worker.free_hands() + len(reports)
            return journal.take_turn(reports, worker=worker.worker, hands=free)
        except Exception as error:
            self._failed(error)
            return []
        finally:
            self.witness.see_new_cases(self.workflows, self.now)

    def _failed(self, error: Exception) -> None:
        """No turn may fail: who holds the locks has all that it needs."""
        self.found.append(Violation("no_turn_fails", "simulation", f"{type(error).__name__}: {error}"))

    def _after_turn(self, worker: SimulatedWorker, reports: list[Any], claims: list[Any]) -> None:
        worker.forget(reports)
        worker.take(claims, self.now, self.rng)
        worker.bell = bool(claims) or bool(worker.flights)

    def _beat(self, worker: SimulatedWorker) -> None:
        if worker.is_overdue(self.now):
            self._die(worker)
            return
        if worker.beat_at is not None and self.now < worker.beat_at:
            return
        worker.beat_at = self.now + seconds(5 * (0.5 + self.rng.random()))
        if worker.flights and self.rng.random() < 0.8:
            leases.renew(worker.holdings(), holder=worker.id)

    def _die(self, worker: SimulatedWorker) -> None:
        self.workers.remove(worker)
        self.stage.locks.execute("SELECT pg_advisory_unlock(%s)", [worker.lock_key])

    def _running(self) -> list[SimulatedWorker]:
        return [worker for worker in self.workers if worker.runs(self.now)]

    def _send_bell(self) -> None:
        """Lost, late, or doubled."""
        for _ in range(self.rng.choices([0, 1, 2], [2, 6, 1])[0] if self.provider.faulty else 1):
            self.bells.append(self.now + seconds(self.rng.choice([0.0, 0.0, 3.0]) * self.rng.random()))

    def _ring(self) -> None:
        arrived = [bell for bell in self.bells if bell <= self.now]
        self.bells = [bell for bell in self.bells if bell > self.now]
        for _ in arrived:
            if running := self._running():
                self.rng.choice(running).bell = True

    def _tell(self) -> None:
        simulated_time.tell(self.now)


def _lock_key(identifier: uuid.UUID) -> int:
    """Also for the same seed another one each time."""
    return int.from_bytes(hashlib.sha256(identifier.bytes).digest()[:7])


def _truthful(case: Case, *, effects: int) -> Decision:
    legal: Container[Decision] = CASE_RULES[CaseReason(case.reason)].decisions
    wanted = [Decision.CONFIRM] if effects else [Decision.RETRY]
    return next(kind for kind in (*wanted, Decision.ACKNOWLEDGE, Decision.ABANDON) if kind in legal)
