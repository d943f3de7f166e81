"""Bulk jobs in the console, without JavaScript and with htmx: prepared, looked at, started, followed, aborted."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.bulk import jobs
from approvals.models import BulkJob, Decision
from checkpoint.models import Case
from checkpoint.states import Decision as DecisionKind
from checkpoint.states import StepStatus
from tests import factories
from tests.bulk_driver import REASON, answer_next, approval, cases, decider, prepared, results, run, started
from tests.console_driver import HTMX, Forms, signed_in

pytestmark = pytest.mark.usefixtures("database")

RETRY, APPROVE = DecisionKind.RETRY, DecisionKind.APPROVE


@pytest.fixture
def ada() -> User:
    return decider()


@pytest.fixture
def client(ada: User) -> Client:
    return signed_in(ada)


def send(client: Client, **fields: Any) -> Any:
    """What the form in the queue sends; cases and requests by their rows."""
    client.get("/bulk-jobs/")
    sent = {"kind": "retry", "reason": REASON, "selected": "ticked", "token": str(uuid.uuid4()), **fields}
    sent |= {name: [str(one.pk) for one in sent.get(name, [])] for name in ("case", "approval")}
    return client.post("/bulk-jobs/", {**sent, "csrfmiddlewaretoken": client.cookies["csrftoken"].value})


def press(client: Client, page: Any, action: str, *, htmx: bool = False) -> Any:
    """Presses the button of the form that leads there."""
    form = next(form for form in Forms(page.text).forms if form["action"].endswith(action))
    return client.post(form["action"], form["fields"], headers=HTMX if htmx else None)


def offered(page: Any) -> set[str]:
    return {form["action"].rstrip("/").rpartition("/")[2] for form in Forms(page.text).forms} & {"start", "abort"}


def address(job: BulkJob) -> str:
    return f"/bulk-jobs/{job.pk}/"


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
def test_from_the_selection_to_the_results(client: Client, htmx: bool) -> None:
    things = cases(3)
    made = send(client, case=things)
    preview = client.get(made["Location"])
    for shown in ("Retry 3 cases", REASON, "3 of 3 will be answered.", "Sends 3 steps again", "it will happen twice"):
        assert shown in preview.text, shown
    assert all(f"/cases/{case.pk}/" in preview.text for case in things)
    assert offered(preview) == {"start", "abort"}
    begun = press(client, preview, "/start/", htmx=htmx)
    assert begun.status_code == (200 if htmx else 302)
    assert ("<html" in begun.text) is False
    answer_next()
    progress = client.get(made["Location"])
    assert "1 of 3" in progress.text
    assert offered(progress) == {"abort"}
    run(BulkJob.objects.get())
    ended = client.get(made["Location"])
    assert "All have their result" in ended.text
    assert offered(ended) == set()
    assert [decision.channel for decision in Decision.objects.all()] == ["bulk"] * 3


def test_all_that_a_list_shows_is_taken_as_it_is_narrowed(client: Client) -> None:
    cases(2)
    ticket = factories.tool("ticket.open", factories.TICKET)
    factories.case(factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=ticket))
    made = send(client, selected="everything", tool="card.charge", shown="waiting")
    assert BulkJob.objects.get().filter == {"shown": "waiting", "tool": "card.charge"}
    assert "Retry 2 cases" in client.get(made["Location"]).text


def test_s34_the_preview_says_what_the_cap_left_out_and_why(client: Client, settings: Any) -> None:
    settings.CHECKPOINT_BULK_CAP = 2
    cases(3)
    page = client.get(send(client, selected="everything")["Location"])
    assert "3 match. One job takes at most 2, so that a mistake stays small" in page.text
    assert "Retry 2 cases" in page.text


def test_the_preview_shows_arguments_whole_or_says_that_they_are_too_long(client: Client) -> None:
    short = factories.step(factories.workflow(), StepStatus.UNCERTAIN, arguments={"memo": "short " * 20})
    long = factories.step(factories.workflow(), StepStatus.UNCERTAIN, arguments={"memo": "long " * 2000})
    page = client.get(send(client, case=[factories.case(short), factories.case(long)])["Location"]).text
    assert "short " * 20 in page
    assert "long " * 20 not in page
    assert "too many to be shown whole in a list" in page
    assert "1 of 2 will be answered" in page


def test_requests_for_approval_are_prepared_and_answered(client: Client) -> None:
    grave = approval(factories.step(factories.workflow()))
    page = client.get(send(client, kind="approve", approval=[approval(), grave])["Location"])
    assert "Approve 2 requests for approval" in page.text
    assert "never approved in bulk" in page.text
    press(client, page, "/start/")
    job = run(BulkJob.objects.get())
    assert results(job) == ["refused", "done"]
    assert f"/approvals/{grave.pk}/" in client.get(address(job)).text


def test_a_job_that_can_answer_nothing_cannot_be_started_here(client: Client) -> None:
    page = client.get(send(client, kind="continue", case=cases(1))["Location"])
    assert "none of the 1 can be answered in this way" in page.text
    assert offered(page) == {"abort"}


def test_a_second_press_finds_the_first_job_and_another_selection_does_not(client: Client) -> None:
    things, token = cases(2), str(uuid.uuid4())
    one, two = (send(client, case=things, token=token) for _ in range(2))
    assert one["Location"] == two["Location"]
    other = send(client, case=things[:1], token=token)
    assert other["Location"] != one["Location"]
    assert BulkJob.objects.count() == 2


def test_a_form_without_a_usable_token_still_works(client: Client) -> None:
    assert send(client, case=cases(1), token="x").status_code == 302


# --- refusals


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"reason": "  "}, "Say in at most 4000 characters why"),
        ({"kind": ""}, "Choose an answer."),
        ({"kind": "explode"}, "Choose an answer."),
        ({"case": []}, "There are no cases in it."),
        ({"kind": "approve"}, "1 of the selected are not"),
        ({"selected": "everything", "shown": "done"}, "This list shows what is closed."),
        ({"selected": "everything", "shown": "nonsense"}, "It names something that does not exist."),
    ],
)
def test_what_does_not_fit_is_said_and_what_was_typed_is_kept(
    client: Client, fields: dict[str, Any], said: str
) -> None:
    case = cases(1)[0]
    refused = send(client, **{"case": [case], **fields})
    assert refused.status_code == 422
    assert said in refused.text
    form = next(form for form in Forms(refused.text).forms if form["action"] == "/bulk-jobs/")
    assert form["fields"]["reason"] == fields.get("reason", REASON)
    assert not BulkJob.objects.exists()
    kept = {"case": [case], "kind": "retry", "reason": REASON}
    assert send(client, **{**form["fields"], **kept}).status_code == 302


def test_ids_that_are_none_are_refused_in_words(client: Client) -> None:
    client.get("/bulk-jobs/")
    sent = {"csrfmiddlewaretoken": client.cookies["csrftoken"].value, "kind": "retry", "reason": "x", "case": "../etc"}
    refused = client.post("/bulk-jobs/", sent)
    assert (refused.status_code, "does not exist" in refused.text) == (422, True)


def test_what_one_may_not_see_is_404_and_what_one_may_not_do_403() -> None:
    case = cases(1)[0]
    stranger = signed_in(decider("eve", teams=[factories.team("Legal")]))
    auditor = signed_in(factories.person("olaf", groups=["Auditor"]))
    assert send(stranger, case=[case]).status_code == 404
    assert send(auditor, case=[case]).status_code == 403
    assert not BulkJob.objects.exists()


def test_anothers_job_is_404_and_an_auditor_may_look_but_not_act(ada: User) -> None:
    job = prepared(ada, RETRY, cases(1))
    stranger, auditor = signed_in(decider("eve")), signed_in(factories.person("olaf", groups=["Auditor"]))
    assert stranger.get(address(job)).status_code == 404
    page = auditor.get(address(job))
    assert (page.status_code, offered(page)) == (200, set())
    token = {"csrfmiddlewaretoken": signed_cookie(auditor)}
    for action in ("start", "abort"):
        refused = auditor.post(f"{address(job)}{action}/", token)
        assert (refused.status_code, "Only ada" in refused.text) == (403, True)


def signed_cookie(client: Client) -> str:
    client.get("/bulk-jobs/")
    return str(client.cookies["csrftoken"].value)


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
def test_what_ended_meanwhile_is_409_and_shows_how(ada: User, client: Client, htmx: bool) -> None:
    job = prepared(ada, RETRY, cases(1))
    page = client.get(address(job))
    jobs.abort(job_id=job.pk, person=ada, channel="command")
    late = press(client, page, "/start/", htmx=htmx)
    assert (late.status_code, "aborted by ada" in late.text) == (409, True)
    assert offered(late) == set()


@pytest.mark.parametrize("verb", ["start", "abort"])
def test_acting_without_the_csrf_token_does_nothing(ada: User, client: Client, verb: str) -> None:
    job = prepared(ada, RETRY, cases(1))
    assert client.post(f"{address(job)}{verb}/").status_code == 403
    assert BulkJob.objects.get().status == "draft"


def test_a_reload_after_an_action_shows_the_job(ada: User, client: Client) -> None:
    job = prepared(ada, RETRY, cases(1))
    assert [client.get(f"{address(job)}{verb}/")["Location"] for verb in ("start", "abort")] == [address(job)] * 2


# --- how far it is


def test_results_are_filtered_and_each_leads_to_its_case(ada: User, client: Client) -> None:
    good, closed = cases(2)
    job = started(ada, RETRY, [good, closed])
    Case.objects.filter(pk=closed.pk).update(status="settled", closed_at=closed.opened_at, closing="a late receipt")
    run(job)
    moved = client.get(f"{address(job)}?result=moved").text
    assert (f"/cases/{closed.pk}/" in moved, f"/cases/{good.pk}/" in moved) == (True, False)
    assert "a late receipt" in moved
    assert "None with this result." in client.get(f"{address(job)}?result=refused").text
    assert client.get(f"{address(job)}?result=nonsense&after=x").status_code == 200


def test_many_items_are_paged(ada: User, client: Client) -> None:
    job = started(ada, RETRY, cases(51))
    first = client.get(address(job))
    assert ("?after=50" in first.text, 'id="item-51"' in first.text) == (True, False)
    assert 'id="item-51"' in client.get(f"{address(job)}?after=50").text


def test_a_running_jobs_page_polls_and_an_ended_one_does_not(ada: User, client: Client) -> None:
    job = started(ada, RETRY, cases(2))
    polled = client.get(address(job), headers=HTMX)
    assert 'hx-trigger="every 1s"' in polled.text
    seen = {**HTMX, "HX-PTag": polled["HX-PTag"]}
    assert client.get(address(job), headers=seen).status_code == 204
    answer_next()
    assert client.get(address(job), headers=seen).status_code == 200
    run(job)
    assert "hx-trigger" not in client.get(address(job), headers=HTMX).text


def test_aborting_shows_what_was_answered_and_what_was_not(ada: User, client: Client) -> None:
    job = started(ada, RETRY, cases(3))
    answer_next()
    press(client, client.get(address(job)), "/abort/")
    page = client.get(address(job)).text
    assert "Aborted by" in page
    assert "2 will not be answered by this job." in page


def test_what_the_viewer_may_not_see_any_more_is_only_named(ada: User, client: Client) -> None:
    case = cases(1)[0]
    job = prepared(ada, RETRY, [case])
    case.workflow.team.members.remove(ada)
    page = client.get(address(job)).text
    assert f"/cases/{case.pk}/" not in page
    assert str(case.pk)[-8:] in page
    assert "charge_card" not in page


def test_the_list_of_jobs_is_paged_newest_first(ada: User, client: Client) -> None:
    case = cases(1)
    made = [prepared(ada, RETRY, case, reason=f"reason {number}") for number in range(51)]
    first = client.get("/bulk-jobs/")
    assert first.text.index("reason 50") < first.text.index("reason 49")
    assert "reason 0<" not in first.text
    second = client.get(f"/bulk-jobs/?before={made[1].pk}")
    assert "reason 0<" in second.text
    assert "No bulk jobs yet." in signed_in(decider("grace")).get("/bulk-jobs/").text


# --- the queue


def test_the_queue_offers_ticks_and_the_form_to_those_who_may_answer(client: Client) -> None:
    case, request = cases(1)[0], approval()
    page = client.get("/review/").text
    for shown in (
        f'name="case" value="{case.pk}"',
        f'name="approval" value="{request.pk}"',
        "all 1 case or all 1 request",
    ):
        assert shown in page, shown
    done = client.get("/review/?list=done").text
    assert 'form="bulk"' not in done
    auditor = signed_in(factories.person("olaf", groups=["Auditor"])).get("/review/").text
    assert ('form="bulk"' in auditor, 'id="bulk"' in auditor) == (False, False)
    operator = signed_in(decider("oona", groups=["Operator"])).get("/review/").text
    assert ("Preview all 1 case<" in operator, 'value="approve"' in operator) == (True, False)


def test_the_form_in_the_queue_prepares_what_the_list_shows(client: Client) -> None:
    ticket = factories.tool("ticket.open", factories.TICKET)
    wanted = factories.case(factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=ticket))
    cases(2)
    queue = client.get("/review/?tool=ticket.open&question=outcome_unknown&list=unassigned")
    form = next(form for form in Forms(queue.text).forms if form["action"] == "/bulk-jobs/")
    made = client.post("/bulk-jobs/", {**form["fields"], "kind": "retry", "reason": REASON, "selected": "everything"})
    job = BulkJob.objects.get()
    assert made["Location"] == address(job)
    assert job.filter == {"shown": "unassigned", "tool": "ticket.open", "reason": "outcome_unknown"}
    assert [item.case_id for item in job.items.all()] == [wanted.pk]


def test_the_queue_is_narrowed_on_all_of_its_pages(client: Client) -> None:
    cases(51)
    ticket = factories.tool("ticket.open", factories.TICKET)
    other = factories.case(factories.step(factories.workflow(), StepStatus.UNCERTAIN, tool_version=ticket))
    page = client.get("/review/?tool=card.charge").text
    assert str(other.pk) not in page
    following = re.findall(r'href="(\?tool=card.charge&amp;after=[^"]+)"', page)
    second = client.get(f"/review/{following[0].replace('&amp;', '&')}").text
    assert (second.count('name="case"'), str(other.pk) in second) == (1, False)
    assert "Nothing in “Waiting” matches." in client.get("/review/?tool=no.such").text


def test_the_queue_takes_few_statements_for_its_polls(client: Client) -> None:
    cases(3)
    client.get("/review/")
    with CaptureQueriesContext(connection) as captured:
        client.get("/review/", headers=HTMX)
    assert len(captured) <= 30
