"""What becomes of the items of a bulk job, and what is on record about it afterwards (S16, S35, S37)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from approvals.bulk import work
from approvals.models import Decision
from checkpoint import audit
from checkpoint.models import AuditEntry, Step
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import StepStatus
from checkpoint.trail import audit_search
from checkpoint.trail.audit_filter import AuditFilter
from tests import factories
from tests.bulk_driver import (
    REASON,
    answer_next,
    approval,
    cases,
    chosen,
    decider,
    messages,
    results,
    run,
    started,
    trail,
)  # fmt: skip
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

RETRY, ABANDON, APPROVE, REJECT = DecisionKind.RETRY, DecisionKind.ABANDON, DecisionKind.APPROVE, DecisionKind.REJECT


def content(entry: AuditEntry) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(entry.text)
    return loaded


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


def test_a_database_that_goes_away_in_an_item_leaves_it_pending_for_the_next_worker(
    monkeypatch: pytest.MonkeyPatch, time_machine: MovableTime
) -> None:
    from approvals import decisions

    def away(**asked: Any) -> Decision:
        raise OperationalError("the server closed the connection unexpectedly")

    job = started(decider(), RETRY, cases(2))
    with monkeypatch.context() as patched:
        patched.setattr(decisions, "decide", away)
        with pytest.raises(OperationalError):
            answer_next()
    assert results(job) == ["pending", "pending"]
    assert not work.work(seconds=60), "it is held for a while"
    time_machine.pass_seconds(work.HOLD_SECONDS + 1)
    assert run(job).status == "done"
    assert results(job) == ["done", "done"]


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
