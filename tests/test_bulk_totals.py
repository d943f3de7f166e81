"""Whatever else happens while a job runs: its totals add up, and each result is true (S33)."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals.bulk import jobs, trail, work
from approvals.decisions import decide
from approvals.models import BulkItem, BulkJob, Decision
from checkpoint import audit, clock
from checkpoint.errors import Conflict, Forbidden, NotFound
from checkpoint.models import AuditEntry, Case, Step
from checkpoint.states import CaseStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.bulk_driver import answer_next, cases, decider, results, started

pytestmark = pytest.mark.usefixtures("database")

COUNT = 3
NAMES = itertools.count(1)


class Scene:
    """A running job of COUNT items, and all that may happen meanwhile."""

    def __init__(self) -> None:
        number = next(NAMES)
        self.ada, self.grace = decider(f"ada{number}"), decider(f"grace{number}")
        self.cases = cases(COUNT)
        self.job = started(self.ada, DecisionKind.RETRY, self.cases)

    def step(self) -> None:
        """A worker comes to the next item."""
        answer_next()

    def elsewhere(self, index: int, kind: DecisionKind = DecisionKind.CONFIRM, person: User | None = None) -> None:
        """Somebody answers one of them on its own page."""
        case = Case.objects.select_related("step").get(pk=self.cases[index].pk)
        with suppress(Conflict, Forbidden, NotFound):
            decide(
                case_id=case.pk, kind=kind, person=person or self.grace, channel="console", reason="I looked.",
                step_version=case.step.version, arguments_hash=case.step.arguments_hash,
            )  # fmt: skip

    def same(self, index: int) -> None:
        """Its own person gives the same answer to one of them on its own page."""
        self.elsewhere(index, DecisionKind.RETRY, self.ada)

    def settle(self, index: int) -> None:
        """Evidence settles one of them."""
        open_one = Case.objects.filter(pk=self.cases[index].pk, status=CaseStatus.OPEN)
        open_one.update(status=CaseStatus.SETTLED, closed_at=clock.now(), closing="a late receipt")

    def move(self, index: int) -> None:
        """A step changes."""
        step = Step.objects.get(pk=self.cases[index].step_id)
        Step.objects.filter(pk=step.pk).update(version=step.version + 1)

    def forbid(self, index: int) -> None:
        """The person loses the right, or gets it back."""
        group = factories.person(f"of{next(NAMES)}", groups=["Approver"]).groups.get()
        self.ada.groups.remove(group) if index else self.ada.groups.add(group)

    def abort(self, index: int) -> None:
        """Enough."""
        if BulkJob.objects.get(pk=self.job.pk).status != "done":
            jobs.abort(job_id=self.job.pk, person=self.ada, channel="console")

    def check(self) -> None:
        """The totals add up, and what is called done is exactly what this job decided."""
        totals = trail.totals(self.job)
        assert totals.pending + totals.answered == self.job.count == COUNT
        done = BulkItem.objects.filter(job=self.job, result="done")
        decided = Decision.objects.filter(channel="bulk", person_name=self.ada.username)
        assert {item.decision_id for item in done} == {decision.pk for decision in decided}
        assert Decision.objects.filter(case__in=self.cases).count() == len(
            Case.objects.filter(pk__in=[case.pk for case in self.cases], status=CaseStatus.DECIDED)
        )
        answered = AuditEntry.objects.filter(stream_id=self.job.pk, verb="answer_item").count()
        assert answered == totals.answered

    def close(self) -> None:
        """Works to the end: everything has its result, or the job was aborted."""
        while work.work(seconds=60):
            pass
        job = BulkJob.objects.get(pk=self.job.pk)
        assert job.status in ("done", "aborted")
        assert (trail.totals(job).pending == 0) or job.status == "aborted"


EVENTS: list[Callable[[Scene, int], None]] = [
    Scene.elsewhere, Scene.same, Scene.settle, Scene.move, Scene.forbid, Scene.abort,
]  # fmt: skip
Happening = tuple[Callable[[Scene, int], None], int]
EVENT = st.tuples(st.sampled_from(EVENTS), st.integers(0, COUNT - 1))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.none(), EVENT), max_size=7))
def test_totals_add_up_under_every_interleaving(
    happenings: list[tuple[Callable[[Scene, int], None], int] | None],
) -> None:
    """None is the worker's turn."""
    scene = Scene()
    for happening in happenings:
        if happening is None:
            scene.step()
        else:
            happening[0](scene, happening[1])
        scene.check()
    scene.close()
    scene.check()


@pytest.mark.parametrize("before", range(COUNT + 1))
@pytest.mark.parametrize("index", range(COUNT))
def test_somebody_else_decides_one_item_at_any_moment(before: int, index: int) -> None:
    scene = Scene()
    for _ in range(before):
        scene.step()
    scene.elsewhere(index)
    scene.close()
    scene.check()
    expected = ["done"] * COUNT
    if before <= index:
        expected[index] = "moved"
    assert results(scene.job) == expected


def test_two_workers_and_a_third_person_at_once_answer_each_item_once() -> None:
    scene = Scene()
    BulkJob.objects.filter(pk=scene.job.pk).update(holder=None, worked_until=None)
    together = threading.Barrier(3)

    def worker() -> None:
        try:
            together.wait(timeout=30)
            for _ in range(COUNT):
                # As if the one that holds the job were paused past its time.
                BulkJob.objects.filter(pk=scene.job.pk).update(worked_until=clock.now())
                work.work(seconds=0)
        finally:
            connection.close()

    def other() -> None:
        try:
            together.wait(timeout=30)
            for index in range(COUNT):
                scene.elsewhere(index)
        finally:
            connection.close()

    threads = [threading.Thread(target=body) for body in (worker, worker, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    BulkJob.objects.filter(pk=scene.job.pk).update(worked_until=None)
    scene.close()
    scene.check()
    assert Counter(results(scene.job))["pending"] == 0
    assert Decision.objects.count() == COUNT
    assert list(audit.broken_links()) == []


def test_an_abort_in_the_middle_of_an_item_waits_for_it_or_undoes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's row is locked by the item's transaction last: whoever comes first counts, and both agree."""
    scene = Scene()
    original = work._record

    def record(*args: object) -> None:
        monkeypatch.setattr(work, "_record", original)
        thread = threading.Thread(target=abort)
        thread.start()
        thread.join()
        original(*args)  # type: ignore[arg-type]

    def abort() -> None:
        jobs.abort(job_id=scene.job.pk, person=scene.ada, channel="console")
        connection.close()

    monkeypatch.setattr(work, "_record", record)
    scene.step()
    assert results(scene.job) == ["pending"] * COUNT
    assert not Decision.objects.exists()
    scene.check()
