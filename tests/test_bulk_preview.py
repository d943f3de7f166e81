"""The preview says what then happens: results and reasons by item, counts by tool, consequences in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import models
from approvals.bulk import consequences, jobs
from approvals.bulk.consequences import Effect
from approvals.bulk.preview import Preview, ToolLine, preview
from approvals.bulk.selection import Matching, Selection
from approvals.bulk.states import ANSWERS, BulkNoun, BulkResult
from approvals.decisions import decide
from approvals.models import BulkJob
from checkpoint.contracts import Contract
from checkpoint.models import Approval, Case, Step
from checkpoint.models.identifiers import uuid7
from checkpoint.states import CASE_RULES, CaseReason, Decision, StepStatus
from tests import factories
from tests.bulk_driver import approval, cases, decider, messages, prepared, results, run
from tests.case_driver import put_in_force
from tests.journal_driver import KEYED, OPAQUE, QUERYABLE, READ_ONLY, VERIFIABLE
from tests.time_driver import MovableTime

CONFIRM, RETRY, ABANDON, APPROVE = Decision.CONFIRM, Decision.RETRY, Decision.ABANDON, Decision.APPROVE


def foreseen(job: BulkJob) -> list[str]:
    return [one.result.value for one in preview(job).expected]


def assert_it_happens_so(job: BulkJob) -> list[str]:
    """Starts the job and holds what was foreseen, with a reason for what is not done, against what became of it."""
    before = preview(job).expected
    assert all(one.message for one in before if one.result is not BulkResult.DONE)
    assert job.person is not None
    jobs.start(job_id=job.pk, person=job.person, channel="console")
    run(job)
    assert results(job) == [one.result for one in before]
    assert all(message for result, message in zip(results(job), messages(job), strict=True) if result != "done")
    return results(job)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("kind", ANSWERS[BulkNoun.CASE])
def test_of_every_reason_and_answer_the_forecast_is_what_happens(kind: Decision) -> None:
    for reason in CaseReason:
        factories.case(of_reason(reason), reason)
    job = prepared(decider(), kind, selection=Selection(matching=Matching()))
    allowed = [kind in CASE_RULES[CaseReason(item.case.reason)].decisions for item in job.items.all() if item.case]
    assert assert_it_happens_so(job) == ["done" if legal else "refused" for legal in allowed]


def of_reason(reason: CaseReason) -> Step:
    """A step as it is when the question is asked, with what an answer to it needs."""
    if reason is CaseReason.EFFECT_NOT_VISIBLE:
        step = factories.step(factories.workflow(), StepStatus.COMMITTED)
        factories.move(step, StepStatus.UNCERTAIN)
        return step
    step = factories.step(factories.workflow(), CASE_RULES[reason].step_status or StepStatus.PREPARED)
    factories.evidence(step, finding="found_other")
    return step


def closed(case: Case) -> None:
    Case.objects.filter(pk=case.pk).update(status="settled", closed_at=case.opened_at)


def moved(case: Case) -> None:
    Step.objects.filter(pk=case.step_id).update(version=case.step.version + 1)


def decided(case: Case) -> None:
    decide(
        case_id=case.pk, kind=CONFIRM, person=decider("grace"), channel="console", reason="I looked.",
        step_version=case.step.version, arguments_hash=case.step.arguments_hash,
    )  # fmt: skip


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("happens", [closed, moved, decided])
def test_what_moved_on_since_the_selection_is_foreseen(happens: Callable[[Case], None]) -> None:
    every = cases(2)
    job = prepared(decider(), RETRY, every)
    happens(every[0])
    assert assert_it_happens_so(job) == ["moved", "done"]


def test_of_requests_for_approval_the_forecast_is_what_happens(time_machine: MovableTime) -> None:
    ada = decider()
    things = [
        approval(),
        approval(submitted_by=ada),
        approval(submitted_by=ada, self_approval=True),
        approval(groups=("Finance",)),
        approval(needed=2),
        approval(factories.step(factories.workflow())),
        approval(),
        approval(expires_seconds=60),
    ]
    job = prepared(ada, APPROVE, things)
    Approval.objects.filter(pk=things[6].pk).update(status="withdrawn", closed_at=things[6].requested_at)
    time_machine.pass_seconds(61)
    expected = ["done", "refused", "done", "refused", "done", "refused", "moved", "moved"]
    before = {one.listed.about.pk: one.result.value for one in preview(job).expected}
    assert [before[thing.pk] for thing in things] == expected
    assert assert_it_happens_so(job)[0] == "refused"  # what cannot be undone comes first


@pytest.mark.usefixtures("database")
def test_items_are_counted_by_tool_and_what_cannot_be_undone_comes_first() -> None:
    ticket = factories.tool("ticket.open", factories.TICKET)
    tickets = [factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=ticket) for _ in range(3)]
    every = [*(factories.case(step) for step in tickets), *cases(2)]
    job = prepared(decider(), RETRY, every)
    moved(every[0])
    assert preview(job).tools == [
        ToolLine("card.charge@1", "irreversible", 2, 2),
        ToolLine("ticket.open@1", "compensable", 3, 2),
    ]


@pytest.mark.usefixtures("database")
def test_refusals_are_gathered_by_their_reason() -> None:
    every = [factories.case(reason=CaseReason.CONFLICTING_EFFECT) for _ in range(2)]
    every += [factories.case(reason=CaseReason.DUPLICATE_EFFECT), *cases(1)]
    found = preview(prepared(decider(), RETRY, every)).unanswered
    assert [len(items) for _, items in found] == [2, 1]
    assert "confirm, abandon; not with retry" in found[0][0]


@pytest.mark.usefixtures("database")
def test_a_preview_takes_few_statements_however_many_items_and_loads_no_payloads() -> None:
    big = factories.step(factories.workflow(), StepStatus.UNCERTAIN, arguments={"memo": "x" * 100_000})
    ada = decider()
    counts = []
    for things in ([factories.case(big)], cases(20)):
        job = prepared(ada, RETRY, things)
        with CaptureQueriesContext(connection) as captured:
            found = preview(BulkJob.objects.get(pk=job.pk))
            assert found.tools
        counts.append(len(captured))
        assert all(len(one.listed.text or "") <= 2000 for one in found.expected)
    assert counts[0] == counts[1] <= 12


# --- the words


def effect(contract: Contract | None = KEYED, **more: Any) -> Effect:
    known = {"reason": CaseReason.OUTCOME_UNKNOWN, "attempted": True}
    return Effect(workflow_id=uuid7(), contract=contract, **{**known, **more})


def said(kind: Decision, *effects: Effect) -> str:
    return " ".join([*consequences.sentences(kind, effects), consequences.warning(kind, effects)]).strip()


@pytest.mark.parametrize("kind", [kind for kinds in ANSWERS.values() for kind in kinds])
def test_each_answer_has_its_words_and_none_are_said_about_nothing(kind: Decision) -> None:
    assert "2" in said(kind, effect(), effect())
    assert said(kind, effect())
    assert said(kind) == ""


def test_the_words_of_retry_tell_what_a_repetition_does() -> None:
    effects = [effect(one) for one in (KEYED, READ_ONLY, OPAQUE, None)]
    words = said(RETRY, *effects, effect(QUERYABLE, attempted=False))
    assert "Sends 4 steps again, each with its own key." in words
    assert "For 2 of them a repetition does no harm" in words
    assert "2 go to a provider that does not recognise a repetition" in words
    assert "Prepares 1 step again" in words
    assert "twice" not in said(RETRY, effect(KEYED))


def test_the_words_of_confirm_tell_what_is_read_back_and_what_stands_on_a_word() -> None:
    words = said(CONFIRM, effect(VERIFIABLE), effect(OPAQUE), effect(VERIFIABLE, reason=CaseReason.EFFECT_NOT_VISIBLE))
    assert "1 is then read back" in words
    assert "2 count as done on your word" in words


def test_the_words_of_abandon_count_workflows() -> None:
    one, two = effect(), effect()
    assert "winds their 2 workflows down" in said(ABANDON, one, two)
    same = Effect(one.workflow_id, one.reason, one.contract, attempted=True)
    assert "winds its workflow down" in said(ABANDON, one, same)


def test_the_words_of_approve_tell_who_else_is_needed() -> None:
    assert "1 waits for the approval of another person besides." in said(APPROVE, effect(), effect(needs_others=True))


def test_a_preview_without_anything_to_answer_promises_nothing() -> None:
    assert (Preview(RETRY, []).sentences, Preview(RETRY, []).warning, Preview(RETRY, []).tools) == ([], "", [])


@pytest.mark.usefixtures("database")
def test_where_two_people_are_needed_the_forecast_is_what_happens() -> None:
    rule = {"name": "four eyes", "set": {"decisions": {"outcome_unknown": {"retry": {"needed": 2}}}}}
    put_in_force({"rules": [rule]})
    ada, grace, things = decider(), decider("grace"), cases(3)
    first = prepared(ada, RETRY, things[:2])
    assert "2 wait for the same answer of another person" in " ".join(preview(first).sentences)
    assert assert_it_happens_so(first) == ["done", "done"]
    assert "waits for another person" in messages(first)[0]
    assert assert_it_happens_so(prepared(ada, RETRY, things)) == ["moved", "moved", "done"]
    assert not models.Decision.objects.exists()
    second = prepared(grace, RETRY, things[:1])
    assert "Sends 1 step again" in " ".join(preview(second).sentences)
    assert assert_it_happens_so(second) == ["done"]
    assert models.Decision.objects.get().case == things[0]
