"""Bulk jobs: frozen at creation, capped, started and aborted by their person, with a reason (S33, S34, S35)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from approvals.bulk import jobs
from approvals.bulk.selection import Matching, Selection
from approvals.inbox.narrowing import Narrowed
from approvals.models import BulkJob, Decision
from checkpoint.errors import BulkJobClosed, DecisionIncomplete, Forbidden, NotFound
from checkpoint.models import AuditEntry, Case, Step
from checkpoint.states import CaseReason, CaseStatus, StepStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.bulk_driver import (
    answer_next,
    approval,
    cases,
    decider,
    prepared,
    results,
    run,
    started,
    trail,
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("database")

RETRY, ABANDON, APPROVE, REJECT = DecisionKind.RETRY, DecisionKind.ABANDON, DecisionKind.APPROVE, DecisionKind.REJECT
EVERYTHING = Selection(matching=Matching())


def content(entry: AuditEntry) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(entry.text)
    return loaded


# --- what is selected is frozen


def test_s33_what_matches_later_is_not_in_it_and_what_was_shown_is_answered() -> None:
    early, ada = cases(3), decider()
    job = prepared(ada, RETRY, selection=EVERYTHING)
    late = cases(2)
    jobs.start(job_id=job.pk, person=ada, channel="console")
    assert run(job).count == 3
    assert results(job) == ["done"] * 3
    assert set(Decision.objects.values_list("case", flat=True)) == {case.pk for case in early}
    assert Case.objects.filter(pk__in=[case.pk for case in late], status=CaseStatus.OPEN).count() == 2


def test_s33_a_step_that_moved_on_after_it_was_selected_is_left_alone() -> None:
    case, ada = cases(1)[0], decider()
    job = started(ada, RETRY, [case])
    Step.objects.filter(pk=case.step_id).update(version=case.step.version + 1)
    run(job)
    assert results(job) == ["moved"]
    assert not Decision.objects.exists()


def test_preparing_answers_nothing() -> None:
    case, ada = cases(1)[0], decider()
    job = prepared(ada, RETRY, [case])
    assert run(job).status == "draft"
    assert not Decision.objects.exists()
    assert Step.objects.get(pk=case.step_id).status == StepStatus.UNCERTAIN


def test_s34_all_that_match_are_in_it_beyond_any_page() -> None:
    cases(60)
    job = prepared(decider(), RETRY, selection=EVERYTHING)
    assert (job.matched, job.count, job.items.count()) == (60, 60, 60)


def test_s34_the_cap_takes_the_first_and_says_how_many_there_were(settings: Any) -> None:
    settings.CHECKPOINT_BULK_CAP = 3
    every = cases(5)
    job = prepared(decider(), RETRY, selection=EVERYTHING)
    assert (job.matched, job.count, job.cap) == (5, 3, 3)
    assert list(job.items.values_list("case", flat=True)) == [case.pk for case in every[:3]]


@pytest.mark.parametrize(
    ("narrowed", "expected"),
    [
        (Narrowed(), 4),
        (Narrowed(team="billing"), 3),
        (Narrowed(kind="invoicing"), 1),
        (Narrowed(tool="ticket.open"), 1),
        (Narrowed(reason="effect_not_visible"), 1),
        (Narrowed(team="billing", tool="card.charge", reason="outcome_unknown"), 1),
    ],
)
def test_a_filter_freezes_exactly_what_it_matches(narrowed: Narrowed, expected: int) -> None:
    legal = factories.team("Legal")
    factories.case()
    factories.case(factories.step(factories.workflow(team=legal), StepStatus.UNCERTAIN))
    factories.case(
        factories.step(factories.workflow(kind="invoicing"), StepStatus.UNCERTAIN), CaseReason.EFFECT_NOT_VISIBLE
    )
    ticket = factories.tool("ticket.open", factories.TICKET)
    factories.case(factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=ticket))
    ada = decider(teams=[factories.team(), legal])
    job = prepared(ada, RETRY, selection=Selection(matching=Matching(narrowed)))
    assert job.count == expected
    assert job.filter == {"shown": "waiting"} | {name: value for name, value in vars(narrowed).items() if value}


def test_only_what_the_person_sees_matches() -> None:
    cases(2)
    factories.case(factories.step(factories.workflow(team=factories.team("Legal")), StepStatus.UNCERTAIN))
    assert prepared(decider(), RETRY, selection=EVERYTHING).count == 2


def test_the_same_thing_selected_twice_is_one_item() -> None:
    case = cases(1)[0]
    assert prepared(decider(), RETRY, [case, case]).count == 1


def test_a_request_sent_twice_prepares_one_job() -> None:
    case, ada, job_id = cases(1)[0], decider(), uuid.uuid4()
    one, two = (prepared(ada, RETRY, [case], job_id=job_id) for _ in range(2))
    assert one == two
    assert (BulkJob.objects.count(), one.items.count(), len(trail(one))) == (1, 1, 1)
    with pytest.raises(NotFound):
        prepared(decider("grace"), RETRY, [case], job_id=job_id)


# --- what is refused at once


@pytest.mark.parametrize("reason", ["", "   ", "x" * 4001, "a\x00b"])
def test_s35_no_job_without_a_reason(reason: str) -> None:
    with pytest.raises(DecisionIncomplete, match="reason: "):
        prepared(decider(), RETRY, cases(1), reason=reason)
    assert not BulkJob.objects.exists()


@pytest.mark.parametrize("selection", [EVERYTHING, Selection()])
def test_nothing_selected_is_refused(selection: Selection) -> None:
    with pytest.raises(DecisionIncomplete, match="selection: "):
        prepared(decider(), RETRY, selection=selection)


@pytest.mark.parametrize(
    ("kind", "others"), [(APPROVE, "1 of the selected are not"), (RETRY, "1 of the selected are not")]
)
def test_cases_and_requests_are_not_mixed(kind: DecisionKind, others: str) -> None:
    with pytest.raises(DecisionIncomplete, match=f"kind: .*{others}"):
        prepared(decider(), kind, [*cases(1), approval()])


def test_what_one_cannot_see_cannot_be_selected_and_the_attempt_is_on_record() -> None:
    eve = decider("eve", teams=[factories.team("Legal")])
    with pytest.raises(NotFound):
        prepared(eve, RETRY, cases(1))
    denied = content(AuditEntry.objects.get(verb="deny"))
    assert (denied["actor"], denied["details"]["wanted"]) == ("eve", "prepare retry in bulk")


@pytest.mark.parametrize(
    ("group", "kind"), [("Auditor", RETRY), ("Admin", RETRY), ("Operator", APPROVE), ("Admin", APPROVE)]
)
def test_who_may_not_give_such_answers_prepares_no_job(group: str, kind: DecisionKind) -> None:
    person = decider(groups=[group])
    things = [approval()] if kind is APPROVE else cases(1)
    with pytest.raises(Forbidden):
        prepared(person, kind, things)
    assert not BulkJob.objects.exists()
    assert AuditEntry.objects.filter(verb="deny", actor="ada").count() == 1


# --- starting and aborting


def test_starting_twice_is_starting_once() -> None:
    ada = decider()
    job = started(ada, RETRY, cases(2))
    assert jobs.start(job_id=job.pk, person=ada, channel="console").status == "running"
    assert [entry.verb for entry in trail(job)] == ["create", "start"]
    assert run(job).status == "done"
    assert jobs.start(job_id=job.pk, person=ada, channel="console").status == "done"


@pytest.mark.parametrize("verb", [jobs.start, jobs.abort])
def test_anothers_job_does_not_exist_for_one(verb: Any) -> None:
    job = prepared(decider(), RETRY, cases(1))
    with pytest.raises(NotFound):
        verb(job_id=job.pk, person=decider("grace"), channel="console")


def test_who_sees_anothers_job_can_still_not_start_it() -> None:
    job = prepared(decider(), RETRY, cases(1))
    auditor = factories.person("grace", groups=["Auditor", "Approver"])
    with pytest.raises(Forbidden, match="Only ada"):
        jobs.start(job_id=job.pk, person=auditor, channel="console")
    with pytest.raises(Forbidden, match="Only ada"):
        jobs.abort(job_id=job.pk, person=auditor, channel="console")
    assert AuditEntry.objects.filter(verb="deny", actor="grace").count() == 2


def test_a_right_taken_away_between_preview_and_start_counts() -> None:
    ada = decider()
    job = prepared(ada, RETRY, cases(1))
    ada.groups.clear()
    with pytest.raises(Forbidden):
        jobs.start(job_id=job.pk, person=ada, channel="console")


def test_abort_stops_before_the_next_item_and_what_was_answered_stays() -> None:
    ada = decider()
    job = started(ada, RETRY, cases(4))
    answer_next()
    answer_next()
    jobs.abort(job_id=job.pk, person=ada, channel="console")
    assert run(job).status == "aborted"
    assert results(job) == ["done", "done", "pending", "pending"]
    assert Decision.objects.count() == 2
    ending = content(trail(job)[-1])
    assert (ending["verb"], ending["details"]) == ("abort", {"pending": 2, "done": 2, "refused": 0, "moved": 0})


def test_an_administrator_aborts_anybodys_job() -> None:
    job = started(decider(), RETRY, cases(1))
    admin = factories.person("root", groups=["Admin"])
    assert jobs.abort(job_id=job.pk, person=admin, channel="command").aborted_by == "root"
    assert jobs.abort(job_id=job.pk, person=admin, channel="command").aborted_by == "root"


def test_what_has_ended_stays_so_and_the_refusal_says_how() -> None:
    ada = decider()
    aborted, done = prepared(ada, RETRY, cases(1)), started(ada, RETRY, cases(1))
    jobs.abort(job_id=aborted.pk, person=ada, channel="console")
    run(done)
    with pytest.raises(BulkJobClosed, match="aborted by ada"):
        jobs.start(job_id=aborted.pk, person=ada, channel="console")
    with pytest.raises(BulkJobClosed, match="done"):
        jobs.abort(job_id=done.pk, person=ada, channel="console")
