"""Winding a workflow down: nothing new starts, what is in the air is settled, what did happen stays listed."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from checkpoint import audit, endings, workflows
from checkpoint.errors import ActionIncomplete, AlreadyEnding, Forbidden, NotFound
from checkpoint.models import AuditEntry, Step, Workflow
from checkpoint.outcomes import OutcomeUnknown, Receipt, Visible
from checkpoint.people import Actor
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import StepStatus, WorkflowStatus
from tests import factories
from tests.case_driver import at_once, raised
from tests.journal_driver import OPAQUE, VERIFIABLE, JournalDriver, answer, case, effect, step, submit

pytestmark = pytest.mark.usefixtures("database")


def admin(name: str = "root") -> User:
    return factories.person(name, groups=["Admin"])


def abandon(workflow: Workflow, person: User, reason: str = "The order was cancelled.") -> Workflow:
    actor = Actor(person.username, "command")
    return workflows.abandon(workflow_id=workflow.pk, actor=actor, user=person, reason=reason)


def statuses(workflow: Workflow) -> list[str]:
    return list(Step.objects.filter(workflow=workflow).order_by("position").values_list("status", flat=True))


def test_what_has_not_run_ends_at_once_and_what_did_happen_stays() -> None:
    workflow, driver = submit(OPAQUE, effect("first"), effect("second", cents=2)), JournalDriver()
    (claim,) = driver.turn()
    (second,) = driver.report(claim, Receipt(operation_id="op_1"))
    driver.report(second, OutcomeUnknown("cut"))
    answer(case(workflow), DecisionKind.RETRY)
    ended = abandon(workflow, admin())
    assert ended.status == WorkflowStatus.ABANDONED
    assert statuses(workflow) == [StepStatus.VERIFIED, StepStatus.ABANDONED]
    assert step(workflow, "first").operation_id == "op_1"
    assert driver.turn() == []
    (entry,) = AuditEntry.objects.filter(stream_id=workflow.pk, verb="wind_down")
    assert (entry.actor, "The order was cancelled." in entry.text) == ("root", True)
    assert list(audit.broken_links()) == []


def test_a_call_on_its_way_is_awaited_and_verified_and_nothing_follows_it() -> None:
    workflow, driver = submit(VERIFIABLE, effect("first"), effect("second", cents=2)), JournalDriver()
    claim = driver.claim()
    assert abandon(workflow, admin()).status == WorkflowStatus.EXECUTING
    (reading,) = driver.report(claim, Receipt(operation_id="op_1"))
    assert statuses(workflow) == [StepStatus.COMMITTED, StepStatus.ABANDONED]
    assert driver.report(reading, Visible({})) == []
    workflow.refresh_from_db()
    assert (workflow.status, statuses(workflow)[0]) == (WorkflowStatus.ABANDONED, StepStatus.VERIFIED)


def test_what_nobody_knows_is_still_asked_and_its_answer_ends_the_workflow() -> None:
    workflow, driver = submit(OPAQUE), JournalDriver()
    driver.report(driver.claim(), OutcomeUnknown("cut"))
    assert abandon(workflow, admin()).status == WorkflowStatus.NEEDS_REVIEW
    answer(case(workflow), DecisionKind.RETRY)
    workflow.refresh_from_db()
    assert (workflow.status, statuses(workflow)) == (WorkflowStatus.ABANDONED, [StepStatus.ABANDONED])
    assert driver.turn() == [], "it did not happen, and is not sent again"


def test_the_preview_says_exactly_what_will_end_and_what_is_in_the_air() -> None:
    workflow = factories.workflow()
    made = {status: factories.step(workflow, status, name=status.value) for status in StepStatus}
    factories.case(made[StepStatus.UNCERTAIN])
    foreseen = endings.of(workflow)
    names = {
        sort: [row.name for row in getattr(foreseen, sort).rows] for sort in ("ending", "in_the_air", "stay")
    }  # fmt: skip
    assert names == {
        "ending": ["planned", "prepared", "failed"],
        "in_the_air": ["started", "committed", "uncertain"],
        "stay": ["verified"],
    }
    assert not foreseen.at_once
    abandon(workflow, admin())
    now = dict(Step.objects.values_list("name", "status"))
    for name in names["ending"]:
        assert now[name] == StepStatus.ABANDONED
    for name in (*names["in_the_air"], *names["stay"]):
        assert now[name] == name


def test_who_submitted_a_workflow_or_administers_it_winds_it_down_and_nobody_else() -> None:
    submitter = factories.person("ann", groups=["Agent"], teams=[factories.team()])
    approver = factories.person("bob", groups=["Approver"], teams=[factories.team()])
    stranger = factories.person("eve", groups=["Approver"], teams=[factories.team("Legal")])
    workflow = factories.workflow(submitted_by=submitter)
    factories.step(workflow)
    with pytest.raises(Forbidden, match="only who submitted a workflow, or an administrator"):
        abandon(workflow, approver)
    with pytest.raises(NotFound):
        abandon(workflow, stranger)
    assert abandon(workflow, submitter).status == WorkflowStatus.ABANDONED


def test_s25_a_right_that_was_taken_away_counts_at_once() -> None:
    workflow = factories.workflow()
    factories.step(workflow)
    person = admin()
    assert person.has_perm("checkpoint.administer_workflow")
    person.groups.clear()
    with pytest.raises(NotFound):
        abandon(workflow, person)
    User.objects.filter(pk=person.pk).update(is_active=False)
    with pytest.raises(NotFound):
        abandon(workflow, person)


def test_the_machines_operator_needs_no_account_and_is_told_what_does_not_exist() -> None:
    workflow = factories.workflow()
    factories.step(workflow)
    operator = Actor("daemon", "command")
    with pytest.raises(NotFound):
        workflows.abandon(workflow_id=uuid4(), actor=operator, reason="x")
    assert workflows.abandon(workflow_id=workflow.pk, actor=operator, reason="x").status == WorkflowStatus.ABANDONED


def test_the_same_press_again_changes_nothing_and_another_persons_is_told_who_began() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.STARTED)
    person = admin()
    assert abandon(workflow, person).version == abandon(workflow, person).version
    with pytest.raises(AlreadyEnding, match="being wound down; root began it"):
        abandon(workflow, admin("other"))


@pytest.mark.parametrize("reason", ["", "  ", "x" * 4001, "a\0b"])
def test_it_takes_a_reason(reason: str) -> None:
    with pytest.raises(ActionIncomplete, match=r"^reason: "):
        abandon(factories.workflow(), admin(), reason)


def test_a_completed_workflow_stays_completed() -> None:
    workflow, driver = submit(OPAQUE), JournalDriver()
    driver.report(driver.claim(), Receipt())
    with pytest.raises(AlreadyEnding, match="The workflow is completed"):
        abandon(workflow, admin())


def test_of_two_who_press_at_once_one_winds_it_down() -> None:
    workflow = factories.workflow()
    factories.step(workflow, StepStatus.STARTED)
    people: list[Any] = [admin(name) for name in ("root", "ruth", "rita")]
    outcomes = at_once(*[partial(abandon, workflow, person) for person in people])
    assert [type(refusal) for refusal in raised(outcomes)] == [AlreadyEnding] * 2
    assert AuditEntry.objects.filter(stream_id=workflow.pk, verb="wind_down").count() == 1
