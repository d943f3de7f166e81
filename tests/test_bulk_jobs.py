"""Bulk jobs: frozen at creation, capped, started and aborted by their person, with a reason (S33, S34, S35)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.bulk import jobs
from approvals.bulk.selection import Matching, Selection
from approvals.models import BulkJob, Decision
from approvals.narrowing import Narrowed
from checkpoint import audit, audit_search
from checkpoint.audit_filter import AuditFilter
from checkpoint.errors import BulkJobClosed, DecisionIncomplete, Forbidden, NotFound
from checkpoint.models import AuditEntry, Case, Step
from checkpoint.states import CaseReason, CaseStatus, StepStatus
from checkpoint.states import Decision as DecisionKind
from tests import factories
from tests.bulk_driver import (
    REASON,
    answer_next,
    approval,
    cases,
    chosen,
    decider,
    messages,
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


# --- the record


def test_s35_every_answer_carries_the_person_the_channel_and_the_reason() -> None:
    ada = decider()
    job = run(started(ada, RETRY, cases(2)))
    for decision in Decision.objects.all():
        assert (decision.person, decision.channel, decision.reason) == (ada, "bulk", REASON)
    own = [content(entry) for entry in trail(job)]
    assert [entry["verb"] for entry in own] == ["create", "start", "answer_item", "answer_item", "finish"]
    assert [entry["channel"] for entry in own] == ["console", "console", "bulk", "bulk", "bulk"]
    assert {entry["actor"] for entry in own} == {"ada"}
    assert {entry["reason"] for entry in own} == {REASON}
    assert own[-1]["details"] == {"pending": 0, "done": 2, "refused": 0, "moved": 0}
    of_workflows = AuditEntry.objects.filter(verb="decide", channel="bulk", actor="ada")
    assert [content(entry)["reason"] for entry in of_workflows] == [REASON] * 2
    assert {content(entry)["request"] for entry in of_workflows} == {f"bulk-{job.pk}"}
    assert list(audit.broken_links()) == []


def test_s35_what_was_answered_in_bulk_is_found_by_person_and_channel() -> None:
    run(started(decider(), RETRY, cases(2)))
    run(started(decider("grace"), ABANDON, cases(1)))
    auditor = factories.person("olaf", groups=["Auditor"])
    found = audit_search.find(auditor, AuditFilter(actor="ada", channel="bulk", verb="decide"))
    assert len(found.rows) == 2
    assert {row.content["reason"] for row in found.rows} == {REASON}


def test_approvals_are_answered_in_bulk_too() -> None:
    given, refused = [approval() for _ in range(2)], [approval()]
    ada = decider()
    assert results(run(started(ada, APPROVE, given))) == ["done", "done"]
    assert results(run(started(ada, REJECT, refused))) == ["done"]
    assert [Step.objects.get(pk=one.step_id).status for one in (*given, *refused)] == [
        "prepared",
        "prepared",
        "abandoned",
    ]


def test_an_approval_that_waits_for_another_person_says_so() -> None:
    job = run(started(decider(), APPROVE, [approval(needed=2)]))
    assert (results(job), messages(job)) == (["done"], ["Recorded as approval 1 of 2; it waits for another person."])


def test_an_answer_that_the_person_gave_before_is_not_counted_as_this_jobs() -> None:
    ada, things = decider(), cases(1)
    first, second = started(ada, RETRY, things), started(ada, RETRY, things)
    run(first)
    assert (results(first), results(second)) == (["done"], ["moved"])
    assert "You gave this answer already" in messages(second)[0]
    assert Decision.objects.count() == 1


# --- S16: the bulk channel decides by the same function


@pytest.mark.parametrize("as_admin", [False, True], ids=["approver", "admin"])
def test_s16_nobody_approves_in_bulk_what_they_submitted(as_admin: bool) -> None:
    ada = decider(groups=["Approver", "Admin"] if as_admin else ["Approver"])
    if as_admin:
        User.objects.filter(pk=ada.pk).update(is_superuser=True)
    own, others = approval(submitted_by=ada), approval()
    job = run(started(User.objects.get(pk=ada.pk), APPROVE, [own, others]))
    assert results(job) == ["refused", "done"]
    assert "what they asked for themselves" in messages(job)[0]
    own.refresh_from_db()
    assert own.status == "pending"
    assert content(AuditEntry.objects.get(verb="deny"))["channel"] == "bulk"


def test_irreversible_steps_are_never_approved_in_bulk() -> None:
    grave = approval(factories.step(factories.workflow()))
    job = run(started(decider(), APPROVE, [grave, approval()]))
    assert results(job) == ["refused", "done"]
    assert "never approved in bulk" in messages(job)[0]
    rejected = run(started(decider("grace"), REJECT, [grave]))
    assert results(rejected) == ["done"]


def test_s37_nothing_is_answered_whose_arguments_are_too_long_to_be_shown_whole() -> None:
    step = factories.step(factories.workflow(), StepStatus.UNCERTAIN, arguments={"memo": "x" * 2000})
    job = run(started(decider(), RETRY, [factories.case(step)]))
    assert results(job) == ["refused"]
    assert "2011 characters" in messages(job)[0]


def test_nothing_is_answered_whose_arguments_do_not_match_their_hash() -> None:
    step = factories.step(factories.workflow(), StepStatus.UNCERTAIN, arguments_hash="0" * 64)
    assert results(run(started(decider(), RETRY, [factories.case(step)]))) == ["refused"]


def test_a_right_taken_away_in_the_middle_counts_for_the_items_that_follow() -> None:
    ada = decider()
    job = started(ada, RETRY, cases(3))
    answer_next()
    ada.groups.clear()
    answer_next()
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert run(job).status == "done"
    assert results(job) == ["done", "refused", "refused"]


def test_an_account_that_is_erased_in_the_middle_answers_nothing_more() -> None:
    ada = decider()
    job = started(ada, RETRY, cases(2))
    answer_next()
    User.objects.filter(pk=ada.pk).delete()
    run(job)
    assert results(job) == ["done", "refused"]
    assert "account of ada" in messages(job)[1]


def test_one_item_that_breaks_does_not_keep_the_job_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from approvals import decisions

    good, bad = cases(2)
    original = decisions.decide

    def decide(**asked: Any) -> decisions.Answered:
        if asked["case_id"] == bad.pk:
            raise ZeroDivisionError
        return original(**asked)

    monkeypatch.setattr(decisions, "decide", decide)
    job = run(started(decider(), RETRY, [bad, good]))
    assert sorted(results(job)) == ["done", "refused"]
    assert job.status == "done"
    assert chosen([good]).cases == (good.pk,)
