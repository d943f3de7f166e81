"""Explores crash points: a worker process cut at every durable boundary, and again while it recovers from that."""

from __future__ import annotations

import gc
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from checkpoint import leases
from checkpoint.contracts import RecoveryClass
from checkpoint.doorbell import rung
from checkpoint.models import Case, Step, Team
from checkpoint.planning.documents import read_document
from checkpoint.planning.plans import parse_plan
from checkpoint.states import CaseReason
from checkpoint.tool_versions import newest_tools
from checkpoint.workflows import submit
from tests.approval_driver import in_force
from tests.proof.boundaries import places_of_points
from tests.proof.cut_worker import END, Birthplace, live
from tests.proof.invariants import Violation, no_more_in_flight_than_allowed, violations
from tests.proof.outside import Outside
from tests.proof.persons import ACTOR, Person, of_run
from tests.proof.subjects import SUBJECTS, Subject
from workers import doorbell, flight_recovery, publishing
from workers.registry import discover
from workers.tools import http_exchange

SENDING, ANSWERED = "call/sending@", ("call/answered@", "after_call/execute@")
Without = Callable[[], None] | None


@dataclass(frozen=True)
class Cuts:
    """At which boundary the first worker, and the one that recovers from it, are killed; 0 for not."""

    first: int = 0
    second: int = 0


@dataclass(frozen=True)
class Part:
    """Which cuts are explored.

    Attributes:
        shard, shards: of the first cuts, those of this shard.
        each: of the pairs only about each so many-th; 0 for none.
    """

    shard: int = 0
    shards: int = 1
    each: int = 1

    def has_first(self, first: int) -> bool:
        """Whether the first worker is cut there."""
        return first % self.shards == self.shard

    def has_pair(self, first: int, second: int) -> bool:
        """Whether both are."""
        return self.each > 0 and (first * 7 + second) % self.each == 0


EVERYTHING = Part()


@dataclass
class Counts:
    """What was explored.

    Attributes:
        missed: cuts that a life ended before, because another thread of it was quicker at something.
    """

    boundaries: int = 0
    pairs: int = 0
    missed: int = 0
    runs: int = 0
    questions: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    def __str__(self) -> str:
        return (
            f"{self.boundaries} boundaries, {self.pairs} pairs ({self.missed} cuts missed), {self.runs} runs, "
            f"{self.questions} questions, {len(self.violations)} violations, {self.seconds:.0f} s"
        )


@dataclass
class Run:
    """One workflow, the boundaries that each life came to, and what is known from outside.

    Attributes:
        lives: by worker, the names of the boundaries up to the one where it was killed.
    """

    outside: Outside
    lives: list[list[str]] = field(default_factory=list)
    found: list[Violation] = field(default_factory=list)
    questions: int = 0

    def effects(self, step: Step) -> int:
        """From the provider's ledger, or from the folder."""
        return self.outside.effects(step)

    def lied(self, step: Step) -> bool:
        """This provider never does."""
        return False

    def could_be_known(self, case: Case) -> str:
        """Only an opaque call that a kill left in mid-air is a question."""
        if case.reason == CaseReason.HUMAN_TASK:
            return "" if case.step.tool_version.contract(case.step.variant).asks else "it is no task for a person"
        if case.reason != CaseReason.OUTCOME_UNKNOWN:
            return "nothing went wrong but the death of workers"
        if case.step.tool_version.contract(case.step.variant).recovery is not RecoveryClass.OPAQUE:
            return "its effect can be looked up, or brought about again"
        cut = any(_in_mid_air(life, case.step.name) for life in self.lives)
        return "" if cut else "no call of it was cut between the recorder's `sending` and `answered`"


def _in_mid_air(life: Sequence[str], step: str) -> bool:
    """Whether the life was cut when the flight recorder had `sending` of the step's call, and no answer.

    Each of these points comes right after the recorder's word that it is named for.
    """
    if life[-1] == END:
        return False
    words = [name for name in life if name in (SENDING + step, *(told + step for told in ANSWERED))]
    return bool(words) and words[-1] == SENDING + step


class Explorer:
    """Runs a subject with cuts, and judges each run by the invariants."""

    def __init__(self, outside: Outside, folder: Path, owner_url: str, *, without: Without = None) -> None:
        self.outside = outside
        self.counts = Counts()
        self._born = Birthplace(folder / "trace", owner_url, discover(), without)
        # A lost doorbell changes nothing; a broker's connection that is shared with a forked process would.
        rung.disconnect(doorbell.send)
        # What every life would do anew is done before they are forked.
        places_of_points()
        http_exchange._tls()
        gc.freeze()
        self._team = Team.objects.get(slug="default")
        publishing.publish(self._born.tools.values())
        self._tools = newest_tools()
        _limit()

    def explore(self, subject: Subject, part: Part = EVERYTHING) -> None:
        """Every boundary of a subject, and every boundary of what recovers from each; or a part of them."""
        begun = time.monotonic()
        whole = self.run(subject, Cuts())
        for first in range(1, len(whole.lives[0])):
            if not part.has_first(first):
                continue
            self.counts.boundaries += 1
            recovery = self.run(subject, Cuts(first)).lives[-1]
            for second in range(1, len(recovery)):
                if part.has_pair(first, second):
                    self.counts.pairs += 1
                    self.run(subject, Cuts(first, second))
        self.counts.seconds += time.monotonic() - begun

    def run(self, subject: Subject, cuts: Cuts) -> Run:
        """What one run submits: the first worker to its cut, the second to its cut, a third to the end."""
        run = Run(self.outside)
        self._tidy_up()
        submitted = self._submit(subject)
        for cut in self._lives(cuts):
            run.lives.append(self._live(submitted, subject.person, cut))
            run.found += self._look_outside(subject, submitted)
        workflows = [workflow.pk for workflow in of_run(submitted)]
        run.found += violations(workflows, run, quiescent=True)
        run.questions = Case.objects.filter(workflow__in=workflows).exclude(reason=CaseReason.HUMAN_TASK).count()
        self._count(subject, cuts, run)
        return run

    def _lives(self, cuts: Cuts) -> Iterator[int]:
        yield from (cut for cut in (cuts.first, cuts.second) if cut)
        yield 0

    def _live(self, submitted: list[uuid.UUID], person: Person, cut: int) -> list[str]:
        life = live(self._born, submitted, person, cut=cut)
        self.counts.missed += bool(cut) and life[-1] == END
        return life

    def _look_outside(self, subject: Subject, submitted: list[uuid.UUID]) -> list[Violation]:
        """After every life, so that a file that was written twice is seen twice."""
        steps = Step.objects.filter(workflow__in=of_run(submitted)).select_related("tool_version")
        for step in steps:
            self.outside.effects(step)
        return list(no_more_in_flight_than_allowed(submitted, {steps[0].tool_version.name: subject.in_flight}))

    def _tidy_up(self) -> None:
        """What earlier runs left behind is no business of this one."""
        flight_recovery.tell_of_the_dead()
        leases.end_dead_processes()

    def _submit(self, subject: Subject) -> list[uuid.UUID]:
        steps = subject.steps(self.outside, uuid.uuid4().hex)
        document = {"goal": "Be explored.", "kind": subject.name, "prompt_version": "1", "steps": steps}
        text = json.dumps(document).encode()
        plans = [parse_plan(read_document(text, "json"), self._tools) for _ in range(subject.workflows)]
        return [submit(plan, team=self._team, actor=ACTOR).pk for plan in plans]

    def _count(self, subject: Subject, cuts: Cuts, run: Run) -> None:
        self.counts.runs += 1
        self.counts.questions += run.questions
        for violation in run.found:
            ends = " then ".join(life[-1] for life in run.lives)
            self.counts.violations.append(f"{subject.name} {cuts.first},{cuts.second} ({ends}): {violation}")


def _limit() -> None:
    """Puts a policy in force that limits what the limited subjects do at once."""
    limited = [subject for subject in SUBJECTS if subject.in_flight]
    rules = [{"when": {"kind": one.name}, "set": {"limits": {"in_flight": one.in_flight}}} for one in limited]
    in_force(*rules)
