"""A batch of a thousand is told in numbers and in pages, and nothing hides behind a flag."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.bulk import jobs
from approvals.decisions import decide
from approvals.models import BulkItem, BulkJob
from approvals.models import Decision as DecisionRow
from checkpoint import queries
from checkpoint.models import Case, Step, ToolVersion, Workflow
from checkpoint.outcomes import Outcome, OutcomeUnknown, Receipt, Refused
from checkpoint.states import CaseReason, Decision, StepStatus
from checkpoint.turns.calls import Report
from tests import bulk_driver, factories
from tests.api_driver import Api
from tests.approval_driver import in_force
from tests.case_driver import command
from tests.console_driver import Forms, signed_in
from tests.journal_driver import OPAQUE, JournalDriver, effect, submit
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")

BAD: dict[str, Outcome] = {
    "s9997": Refused("no such address"),
    "s9998": Refused("no such address"),
    "s9999": OutcomeUnknown("the line went dead"),
}


def settled(size: int, time: MovableTime) -> Workflow:
    """A workflow of one batch of which two steps failed for good, one is uncertain, and the others are verified."""
    names = sorted({*BAD, *[f"s{number:04}" for number in range(size) if number not in (1, 2, 3)]})
    steps = [effect(name, cents=number) | {"position": 1} for number, name in enumerate(names, 1)]
    workflow, driver = submit(OPAQUE, *steps), JournalDriver()
    driver.turn(*(Report(each, BAD.get(each.step_name, Receipt())) for each in driver.turn(hands=2000)), hands=2000)
    time.pass_seconds(5)
    driver.turn(hands=2000)
    return workflow


def test_a_batch_of_a_thousand_shows_997_verified_2_failed_1_uncertain(time_machine: MovableTime) -> None:
    in_force(max_attempts=1, retry_base=0.001)
    small, large = settled(120, time_machine), settled(1000, time_machine)
    client = signed_in(factories.person("grace", groups=["Auditor"]))

    # the page: numbers and words, what needs somebody first, the rest in pages
    with CaptureQueriesContext(connection) as for_small:
        small_page = client.get(f"/workflows/{small.pk}/").text
    with CaptureQueriesContext(connection) as for_large:
        page = client.get(f"/workflows/{large.pk}/").text
    assert len(for_large) == len(for_small), "the number of queries does not depend on the size of a batch"
    assert len(page) < len(small_page) * 1.1, "nor does the page's size"
    assert page.count('<details class="step"') == queries.STEPS_SHOWN + 3
    (counts,) = re.findall(r'<p class="counts">(.*?)</p>', page)
    words = " ".join(re.sub("<[^>]*>", " ", counts).split())
    assert words.replace(" ,", ",") == "1000 side by side: 997 ✓ verified, 2 ✕ failed, 1 ? uncertain"
    urgent = page.partition("These need somebody first")[2].partition('<ol class="plan">')[0]
    assert [name in urgent for name in (*BAD, "s0000")] == [True, True, True, False]
    seen = _names_on_all_pages(client, large)
    assert len(set(seen)) == 1000
    assert len(seen) == 1000 + len(BAD), "what needs somebody comes first, and again in its place"

    # explain
    _, said = command("explain", str(large.pk))
    assert "Batch at position 1: 1000 steps, 997 verified, 2 failed, 1 uncertain" in said
    assert "997 of 1000 steps are verified (2 failed, 1 uncertain)." in said
    assert "s9999: uncertain" in said
    assert "s0000: verified" not in said
    assert said.count("\n") < 60

    # the API
    api = Api.of(factories.person("agent", groups=["Agent"], teams=[large.team]))
    shown = api.get(f"workflows/{large.pk}/").json()
    assert shown["counts"]["plan"]["by_state"] == {"verified": 997, "failed": 2, "uncertain": 1}
    assert shown["counts"]["batches"] == [shown["counts"]["plan"] | {"position": 1}]
    assert len(json.dumps(shown["counts"])) < 400


def _names_on_all_pages(client: Client, workflow: Workflow) -> list[str]:
    names, address = [], f"/workflows/{workflow.pk}/"
    while address:
        context = client.get(address).context
        names += [step.name for step in (*context["urgent"], *context["plan"].rows)]
        address = f"/workflows/{workflow.pk}/?after={context['plan'].following}" if context["plan"].following else ""
    return names


@pytest.fixture
def alike() -> list[Case]:
    """Three cases of one group, and three that are like them in all but one thing."""
    workflow = factories.workflow()
    charge, ticket = factories.tool(), factories.tool("ticket.open", factories.TICKET)

    def asked(position: int, tool: ToolVersion, reason: CaseReason, of: Workflow = workflow) -> Case:
        status = StepStatus.FAILED if reason == CaseReason.RETRIES_EXHAUSTED else StepStatus.UNCERTAIN
        return factories.case(factories.step(of, status, position=position, tool_version=tool), reason)

    group = [asked(1, charge, CaseReason.OUTCOME_UNKNOWN) for _ in range(3)]
    asked(2, charge, CaseReason.OUTCOME_UNKNOWN)
    asked(1, ticket, CaseReason.OUTCOME_UNKNOWN)
    asked(1, charge, CaseReason.RETRIES_EXHAUSTED)
    asked(1, charge, CaseReason.OUTCOME_UNKNOWN, factories.workflow())
    return group


def test_like_cases_of_a_batch_are_a_group_that_is_decided_together_or_each(alike: list[Case]) -> None:
    """The group is the list that the queue is narrowed to; what answers it is a bulk job, by its own rules."""
    ada = bulk_driver.decider()
    client = signed_in(ada)
    page = client.get(f"/cases/{alike[0].pk}/").text
    assert "2 like it in this batch" in page
    (link,) = re.findall(r'href="(/review/\?[^"]*batch=[^"]*)">See or answer all 3 together', page)
    queue = client.get(html.unescape(link))
    assert {question.about.pk for question in queue.context["found"].rows} == {case.pk for case in alike}
    assert "Preview all 3 cases" in queue.text

    found = next(form for form in Forms(queue.text).forms if form["action"].endswith("/bulk-jobs/"))
    sent = {**found["fields"], "kind": "retry", "reason": bulk_driver.REASON, "selected": "everything"}
    answered = client.post(found["action"], sent)
    job = BulkJob.objects.get()
    assert answered["Location"] == f"/bulk-jobs/{job.pk}/"
    assert set(BulkItem.objects.filter(job=job).values_list("case_id", flat=True)) == {case.pk for case in alike}

    one, moved, _ = alike  # one is answered by itself, and another moves on
    Step.objects.filter(pk=moved.step_id).update(version=moved.step_version + 1)
    decide(
        case_id=one.pk, kind=Decision.CONFIRM, person=ada, channel="console", reason="this one did happen",
        step_version=one.step.version, arguments_hash=one.step.arguments_hash,
    )  # fmt: skip
    jobs.start(job_id=job.pk, person=ada, channel="console")
    bulk_driver.run(job)
    assert sorted(bulk_driver.results(job)) == ["done", "moved", "moved"]
    assert [decided.kind for decided in DecisionRow.objects.order_by("decided_at")] == ["confirm", "retry"]


def test_the_workflow_page_links_its_groups_and_other_readers_name_them(alike: list[Case]) -> None:
    ada = bulk_driver.decider()
    workflow, asked = alike[0].workflow_id, f"{alike[0].workflow_id}:1"
    page = signed_in(ada).get(f"/workflows/{workflow}/").text
    assert "3 open questions" in page
    assert f"?batch={asked}&amp;tool=card.charge&amp;question=outcome_unknown" in page
    assert page.count("open questions</span>") == 1
    _, said = command("case", alike[0].pk, "--as", "ada", "show")
    assert f"2 like it in this batch; together: manage.py bulk create ANSWER --all --batch {asked}" in said
    narrowing = ("--batch", asked, "--tool", "card.charge", "--question", "outcome_unknown")
    _, said = command("bulk", "create", "retry", "--all", *narrowing, "--reason", "x" * 20, "--as", "ada")
    assert "3 cases" in said


@pytest.mark.parametrize("named", ["nonsense", "1:1", f"{'0' * 36}:1", ":", "01a2327b-6551-7a8e-84fd-66376bac5ddf:-1"])
def test_what_names_no_batch_matches_nothing(alike: list[Case], named: str) -> None:
    assert not signed_in(bulk_driver.decider()).get("/review/", {"batch": named}).context["found"].rows
