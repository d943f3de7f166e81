"""What PostgreSQL refuses about bulk jobs, in raw SQL, to the application and to the owner of the tables."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from approvals.bulk.states import BULK_JOB_ARROWS, BULK_JOB_INITIAL, BulkJobStatus, BulkResult
from approvals.models import BulkItem, BulkJob
from checkpoint.config.environment import BASE_DIR
from checkpoint.states import Decision as DecisionKind
from tests.bulk_driver import answer_next, cases, decider, prepared, run, started
from tests.law_driver import ACCEPTED, RawSession, raw

__all__ = ["raw"]

pytestmark = pytest.mark.usefixtures("database")

JOB, ITEM = "approvals_bulkjob", "approvals_bulkitem"
NOW = "2026-12-01T12:00:00Z"
RETRY = DecisionKind.RETRY


def job_in(status: BulkJobStatus) -> BulkJob:
    ada = decider(f"ada-{uuid.uuid4()}")
    if status is BulkJobStatus.DRAFT:
        return prepared(ada, RETRY, cases(1))
    job = started(ada, RETRY, cases(1))
    if status is BulkJobStatus.DONE:
        return run(job)
    if status is BulkJobStatus.ABORTED:
        BulkJob.objects.filter(pk=job.pk).update(status=status, ended_at=NOW)
    return BulkJob.objects.get(pk=job.pk)


def item_of(job: BulkJob) -> BulkItem:
    return job.items.order_by("number")[0]


def test_a_job_moves_along_its_arrows_and_no_others(raw: RawSession) -> None:
    for source in BulkJobStatus:
        job = job_in(source)
        for target in set(BulkJobStatus) - {source}:
            ended = NOW if not BULK_JOB_ARROWS[target] else None
            answer = raw.updates(JOB, job.pk, status=target.value, ended_at=ended)
            if (source, target) == (BulkJobStatus.RUNNING, BulkJobStatus.DONE):
                assert answer == "done_means_answered"
            elif target in BULK_JOB_ARROWS[source]:
                assert answer == ACCEPTED, (source, target)
            else:
                assert answer in ("legal_arrows_only", "ending_is_final"), (source, target)


def test_a_job_begins_as_a_draft(raw: RawSession) -> None:
    job = job_in(BulkJobStatus.DRAFT)
    for status in BulkJobStatus:
        ended = NOW if not BULK_JOB_ARROWS[status] else None
        answer = raw.inserts_copy(JOB, job.pk, id=uuid.uuid4(), status=status.value, ended_at=ended)
        assert answer == (ACCEPTED if status in BULK_JOB_INITIAL else "initial_states_only")


@pytest.mark.parametrize(
    "changed",
    [{"kind": "confirm"}, {"reason": "other"}, {"count": 2, "matched": 2}, {"person_name": "eve"}, {"filter": "{}"}],
    ids=lambda changed: str(next(iter(changed))),
)
def test_what_was_prepared_is_fixed(raw: RawSession, changed: dict[str, Any]) -> None:
    assert raw.updates(JOB, job_in(BulkJobStatus.DRAFT).pk, **changed) == "job_is_fixed"


def test_a_job_is_nobody_elses(raw: RawSession) -> None:
    job, eve = job_in(BulkJobStatus.DRAFT), decider("eve")
    assert raw.updates(JOB, job.pk, person_id=eve.pk) == "job_is_fixed"
    assert raw.updates(JOB, job.pk, person_id=None) == ACCEPTED


@pytest.mark.parametrize("status", sorted(set(BulkJobStatus) - {BulkJobStatus.DRAFT}))
def test_nothing_comes_into_a_job_that_was_started(raw: RawSession, status: BulkJobStatus) -> None:
    item, other = item_of(job_in(status)), cases(1)[0]
    fresh = {"result": "pending", "at": None, "decision_id": None, "message": ""}
    answer = raw.inserts_copy(ITEM, item.pk, id=uuid.uuid4(), number=2, case_id=str(other.pk), **fresh)
    assert answer == "selection_is_frozen"


def test_a_job_with_more_or_fewer_items_than_it_shows_cannot_start(raw: RawSession) -> None:
    job, other = job_in(BulkJobStatus.DRAFT), cases(1)[0]
    answer = raw.tries(
        f"INSERT INTO {ITEM} (id, job_id, number, case_id, step_version, arguments_hash, result, message)"
        " VALUES (gen_random_uuid(), %(job)s, 2, %(case)s, 1, '', 'pending', '')",
        f"UPDATE {JOB} SET status = 'running' WHERE id = %(job)s",
        job=job.pk,
        case=other.pk,
    )
    assert answer == "shown_is_acted_on"


@pytest.mark.parametrize("status", [BulkJobStatus.DRAFT, BulkJobStatus.ABORTED])
def test_no_item_gets_a_result_while_its_job_does_not_run(raw: RawSession, status: BulkJobStatus) -> None:
    item = item_of(job_in(status))
    assert raw.updates(ITEM, item.pk, result="refused", at=NOW) == "answers_while_running"


def test_a_result_is_final_and_an_item_is_frozen(raw: RawSession) -> None:
    job = started(decider(), RETRY, cases(2))
    answer_next()
    answered, pending = job.items.order_by("number")
    for result in set(BulkResult) - {BulkResult.DONE, BulkResult.PENDING}:
        assert raw.updates(ITEM, answered.pk, result=result.value, decision_id=None) == "result_is_final"
    assert raw.updates(ITEM, answered.pk, message="otherwise") == "result_is_final"
    assert raw.updates(ITEM, pending.pk, step_version=99) == "item_is_frozen"
    assert raw.updates(ITEM, pending.pk, case_id=answered.case_id) == "item_is_frozen"
    assert raw.updates(ITEM, pending.pk, result="refused", at=NOW, message="no") == ACCEPTED


def test_jobs_and_items_are_kept(raw: RawSession) -> None:
    job = job_in(BulkJobStatus.DONE)
    for table, row in ((ITEM, item_of(job).pk), (JOB, job.pk)):
        assert raw.tries(f"DELETE FROM {table} WHERE id = %(row)s", row=row) in ("no right", "never_deleted")
        assert raw.tries(f"TRUNCATE {table} CASCADE") in ("no right", "never_truncated")


def test_the_page_about_bulk_draws_every_arrow_and_no_other() -> None:
    drawn = set()
    for line in (BASE_DIR / "docs" / "bulk.md").read_text(encoding="utf-8").splitlines():
        source, arrow, rest = line.strip().partition(" --> ")
        if arrow and source != "[*]" and not rest.startswith("[*]"):
            drawn.add((source, rest.partition(":")[0]))
    assert drawn == {(source, target) for source, targets in BULK_JOB_ARROWS.items() for target in targets}
