"""Two sessions at once in raw SQL: no interleaving ends a workflow while a step of it can still go on."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import psycopg
import pytest

from checkpoint.config.embedded_postgres import Addresses
from checkpoint.models import Step, Workflow
from checkpoint.states import StepStatus, WorkflowStatus
from tests import factories
from tests.law_driver import copy_of
from tests.sandbox_driver import wait_for

ISOLATION = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
COMPLETE = (
    "UPDATE checkpoint_workflow SET status = 'completed', ended_at = now(), wake_at = NULL WHERE id = %(workflow)s"
)
ABANDON = (
    "UPDATE checkpoint_step SET status = 'abandoned' WHERE workflow_id = %(workflow)s AND status = 'prepared'",
    "UPDATE checkpoint_workflow SET status = 'abandoned', ended_at = now(), wake_at = NULL WHERE id = %(workflow)s",
)
ADD = copy_of("checkpoint_step")
START = "UPDATE checkpoint_step SET status = 'started', fence = fence + 1 WHERE id = %(row)s"


class Session:
    """One open transaction, at an isolation level, whose snapshot is taken at once."""

    def __init__(self, url: str, isolation: str, statements: tuple[str, ...]) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.pid = self.connection.info.backend_pid
        self.statements = statements
        self.connection.execute(f"BEGIN ISOLATION LEVEL {isolation}".encode())
        self.connection.execute("SELECT FROM checkpoint_workflow, checkpoint_step")

    def works(self, **parameters: object) -> bool:
        """Carries its statements out; whether PostgreSQL accepted them."""
        try:
            for statement in self.statements:
                self.connection.execute(statement.encode(), parameters)
        except (psycopg.IntegrityError, psycopg.errors.SerializationFailure):
            return False
        return True

    def ends(self, how: str) -> bool:
        """COMMIT or ROLLBACK; whether it was committed."""
        try:
            return self.connection.execute(how.encode()).statusmessage == "COMMIT"
        except psycopg.errors.SerializationFailure:
            return False
        finally:
            self.connection.close()


@pytest.fixture
def blocked(database: Addresses) -> Iterator[Callable[[int], bool]]:
    """Whether a session waits for a lock."""
    with psycopg.connect(database.superuser, autocommit=True) as connection:
        query = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"

        def look(pid: int) -> bool:
            row = connection.execute(query, [pid]).fetchone()
            return row is not None and bool(row[0])

        yield look


def interleave(
    first: Session, second: Session, first_ends: str, blocked: Callable[[int], bool], **parameters: object
) -> bool:
    """The second begins after the first has written and ends after it; whether the second was committed."""
    assert first.works(**parameters)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(second.works, **parameters)
        wait_for(lambda: answer.done() or blocked(second.pid))
        first.ends(first_ends)
        return second.ends("COMMIT" if answer.result() else "ROLLBACK")


def ready_to_end(status: StepStatus) -> tuple[Workflow, Step]:
    workflow = factories.workflow()
    step = factories.step(workflow, status)
    for to in (WorkflowStatus.EXECUTING, WorkflowStatus.VERIFYING):
        Workflow.objects.filter(pk=workflow.pk).update(status=to)
    return workflow, step


def adding(step: Step) -> dict[str, object]:
    added = {"id": str(uuid.uuid4()), "name": "late", "status": "prepared", "receipt_id": None}
    return {"row": step.pk, "values": json.dumps(added)}


@pytest.mark.parametrize(
    ("first_ends", "of_end", "of_add"), list(product(["COMMIT", "ROLLBACK"], ISOLATION[:1], ISOLATION))
)
def test_a_step_added_while_the_workflow_completes_gets_in_only_if_it_did_not_complete(
    database: Addresses, blocked: Callable[[int], bool], first_ends: str, of_end: str, of_add: str
) -> None:
    workflow, step = ready_to_end(StepStatus.VERIFIED)
    end, add = Session(database.app, of_end, (COMPLETE,)), Session(database.app, of_add, (ADD,))
    added = interleave(end, add, first_ends, blocked, workflow=workflow.pk, **adding(step))
    assert added == (first_ends == "ROLLBACK")
    workflow.refresh_from_db()
    assert (workflow.status == WorkflowStatus.COMPLETED) == (not added)


@pytest.mark.parametrize(
    ("first_ends", "of_end", "of_add"), list(product(["COMMIT", "ROLLBACK"], ISOLATION, ISOLATION))
)
def test_a_workflow_does_not_complete_over_a_step_that_is_being_added(
    database: Addresses, blocked: Callable[[int], bool], first_ends: str, of_end: str, of_add: str
) -> None:
    workflow, step = ready_to_end(StepStatus.VERIFIED)
    end, add = Session(database.app, of_end, (COMPLETE,)), Session(database.app, of_add, (ADD,))
    ended = interleave(add, end, first_ends, blocked, workflow=workflow.pk, **adding(step))
    if first_ends == "COMMIT" or of_end == "READ COMMITTED":
        assert ended == (first_ends == "ROLLBACK")
    workflow.refresh_from_db()
    assert not (workflow.status == WorkflowStatus.COMPLETED and workflow.steps.exclude(status="verified").exists())


@pytest.mark.parametrize("isolation", ISOLATION[1:])
def test_a_workflow_ends_only_in_a_transaction_that_reads_the_present(database: Addresses, isolation: str) -> None:
    workflow, _ = ready_to_end(StepStatus.VERIFIED)
    session = Session(database.app, isolation, (COMPLETE,))
    assert not session.works(workflow=workflow.pk)
    session.ends("ROLLBACK")


@pytest.mark.parametrize(("end_first", "first_ends"), list(product([True, False], ["COMMIT", "ROLLBACK"])))
def test_a_step_does_not_start_in_a_workflow_that_is_being_abandoned(
    database: Addresses, blocked: Callable[[int], bool], end_first: bool, first_ends: str
) -> None:
    workflow, step = ready_to_end(StepStatus.PREPARED)
    end = Session(database.app, "READ COMMITTED", ABANDON)
    start = Session(database.app, "READ COMMITTED", (START,))
    first, second = (end, start) if end_first else (start, end)
    second_won = interleave(first, second, first_ends, blocked, workflow=workflow.pk, row=step.pk)
    assert second_won == (first_ends == "ROLLBACK")
    workflow.refresh_from_db()
    step.refresh_from_db()
    assert (step.status == StepStatus.STARTED) != (workflow.status == WorkflowStatus.ABANDONED)
