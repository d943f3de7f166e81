"""Workflows over the API: submitted, read, edited and ended, each by what the caller may see and do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from checkpoint.models import AuditEntry, Step, Workflow
from checkpoint.planning.documents import LARGEST_DOCUMENT
from tests import factories
from tests import submissions as driver
from tests.api_driver import Api
from tests.test_compensation import done as effect_is_done

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def bot() -> User:
    """An agent's account, with tools to use."""
    driver.published()
    return factories.person("bot", groups=["Agent"], teams=[factories.team("Billing")])


@pytest.fixture
def api(bot: User) -> Api:
    """The agent's program."""
    return Api.of(bot)


@pytest.fixture
def made(api: Api) -> dict[str, Any]:
    """A submitted workflow."""
    content: dict[str, Any] = api.post("workflows/", driver.document(driver.invoice(), driver.mail())).json()
    return content


def test_a_submission_answers_with_the_place_of_the_workflow(api: Api) -> None:
    answered = api.post("workflows/", driver.document(driver.invoice(), driver.mail()))
    assert answered.status_code == 201
    assert answered.json() == {
        "id": str(Workflow.objects.get().pk), "url": answered["Location"], "status": "planned", "steps": 2,
    }  # fmt: skip
    shown = api.get(answered["Location"]).json()
    assert (shown["goal"], shown["team"], shown["submitted_by"]) == ("Invoice acme for November.", "billing", "bot")


def test_yaml_is_read_too(api: Api) -> None:
    text = "goal: Invoice acme.\nsteps:\n- {name: a, tool: invoice.create, arguments: {customer: acme, cents: 5}}\n"
    answered = api.post("workflows/", text, **{"Content-Type": "application/yaml"})
    assert answered.status_code == 201
    assert Step.objects.get().name == "a"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 422, "submission_invalid"),
        ("", 422, "submission_invalid"),
        ("[]", 422, "submission_invalid"),
        ('{"goal": "a", "goal": "b", "steps": []}', 422, "submission_invalid"),
        (b"\xff\xfe", 422, "submission_invalid"),
        ('{"goal": "a\\u0000", "steps": []}', 422, "submission_invalid"),
        (b" " * (LARGEST_DOCUMENT + 1), 413, "body_too_large"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_faults(api: Api, body: Any, status: int, code: str) -> None:
    answered = api.post("workflows/", body)
    assert (answered.status_code, answered.json()["code"]) == (status, code)
    assert answered["Content-Type"] == "application/problem+json"
    assert answered.json()["type"] == f"urn:checkpoint:problem:{code}"
    assert not Workflow.objects.exists()


def test_another_kind_of_body_is_refused(api: Api) -> None:
    answered = api.post("workflows/", "a=1", **{"Content-Type": "application/x-www-form-urlencoded"})
    assert (answered.status_code, answered.json()["code"]) == (415, "unsupported_media_type")


def test_who_is_in_several_teams_names_one(api: Api, bot: User) -> None:
    bot.teams.add(factories.team("Legal"))
    answered = api.post("workflows/", driver.document())
    assert answered.status_code == 422
    assert "billing, legal" in answered.json()["detail"]
    assert api.post("workflows/?team=legal", driver.document()).status_code == 201


def test_what_one_does_not_see_does_not_exist(api: Api) -> None:
    step = factories.step(factories.workflow(team=factories.team("Legal")))
    for address in (f"workflows/{step.workflow_id}/", f"workflows/{step.workflow_id}/steps/", f"steps/{step.pk}/"):
        assert api.get(address).status_code == 404
    assert api.post(f"workflows/{step.workflow_id}/abandonment/", {"reason": "No."}).status_code == 404
    assert api.get("workflows/").json()["items"] == []


def test_the_list_is_paged_and_narrowed(api: Api, bot: User) -> None:
    team = bot.teams.get()
    for number in range(60):
        factories.workflow(team=team, kind=f"kind-{number % 2}")
    first = api.get("workflows/")
    assert len(first.json()["items"]) == 50
    assert first["Link"] == f'<{first.json()["next"]}>; rel="next"'
    second = api.get(first.json()["next"]).json()
    assert (len(second["items"]), second["next"]) == (10, None)
    ids = [row["id"] for row in (*first.json()["items"], *second["items"])]
    assert len(set(ids)) == 60
    assert len(api.get("workflows/?kind=kind-1").json()["items"]) == 30
    assert api.get("workflows/?after=nonsense").status_code == 400


def test_a_workflow_that_did_not_change_is_not_sent_again(api: Api, made: dict[str, Any]) -> None:
    first = api.get(made["url"])
    again = api.get(made["url"], **{"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_steps_are_listed_without_payloads_and_read_with_them(api: Api, made: dict[str, Any]) -> None:
    rows = api.get(f"{made['url']}steps/").json()["items"]
    assert [row["name"] for row in rows] == ["invoice", "mail"]
    assert "arguments" not in rows[0]
    shown = api.get(rows[0]["url"]).json()
    assert shown["arguments"] == json.loads(Step.objects.get(name="invoice").arguments or "")
    assert shown["idempotency_key"] == Step.objects.get(name="invoice").idempotency_key
    assert api.get(shown["evidence_url"]).json() == {"items": [], "next": None}


def test_an_explanation_says_what_is_next(api: Api, made: dict[str, Any]) -> None:
    told = api.get(f"{made['url']}explanation/").json()
    assert told["sentence"].startswith("0 of 2 steps are verified.")
    assert told["steps"][0]["outlook"]["words"] == "it is executed"


def test_abandoning_is_done_once_and_named(api: Api, made: dict[str, Any]) -> None:
    address = f"{made['url']}abandonment/"
    assert api.post(address, {}).json()["code"] == "action_incomplete"
    assert api.post(address, {"reason": "x", "by": "grace"}).json()["faults"][0]["path"] == "/by"
    assert api.post(address, {"reason": "No."}, **{"If-Match": '"99"'}).json()["code"] == "version_moved"
    ended = api.post(address, {"reason": "Not wanted."}, **{"If-Match": api.get(made["url"])["ETag"]})
    assert (ended.status_code, ended.json()["status"]) == (200, "abandoned")
    assert api.post(address, {"reason": "Not wanted."}).status_code == 200
    entry = AuditEntry.objects.get(stream_id=made["id"], verb="wind_down")
    assert (entry.actor, entry.channel) == ("bot", "api")


def test_s23_an_edit_over_the_api_closes_the_old_key(api: Api, made: dict[str, Any]) -> None:
    address = f"{made['url']}steps/invoice/edit/"
    change = {"arguments": {"customer": "acme", "cents": 7}, "reason": "The sum was wrong."}
    answered = api.post(address, change, key="a")
    assert answered.status_code == 201
    assert answered.json()["arguments"]["cents"] == 7
    assert api.post(address, change, key="a")["Idempotency-Replayed"] == "true"
    assert Step.objects.filter(name="invoice", status="superseded").count() == 1
    back = {"arguments": driver.invoice()["arguments"], "reason": "Back."}
    assert api.post(address, back).json()["code"] == "edit_refused"
    wrong = api.post(address, {"arguments": {"cents": "x"}, "reason": "y"}).json()
    assert {fault["path"] for fault in wrong["faults"]} == {"/customer", "/cents"}


def test_resuming_names_the_prompt_and_is_in_the_audit(api: Api, made: dict[str, Any]) -> None:
    address = f"{made['url']}resumption/"
    assert api.post(address, {}).json()["code"] == "action_incomplete"
    assert api.post(address, {"prompt_version": "refund/2"}).status_code == 200
    assert AuditEntry.objects.get(stream_id=made["id"], verb="resume").channel == "api"


def test_an_effect_is_undone_once(api: Api, bot: User) -> None:
    bot.teams.add(factories.team("Default"))
    workflow, _ = effect_is_done(user=bot)
    done = workflow.steps.get()
    address, sent = f"steps/{done.pk}/compensation/", {"reason": "Wrong size.", "step_version": done.version}
    assert api.post(address, {**sent, "step_version": 99}).json()["code"] == "stale_view"
    first, again = api.post(address, sent), api.post(address, sent)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first["Location"] == again["Location"]
    assert Step.objects.get(compensates=done).workflow_id != done.workflow_id


def test_tools_come_with_their_schema(api: Api) -> None:
    assert [tool["name"] for tool in api.get("tools/").json()] == ["invoice.create", "mail.send"]
    assert api.get("tools/invoice.create/").json()["schema"] == driver.INVOICE_SCHEMA
    for name in ("nothing", "a%00b"):
        assert api.get(f"tools/{name}/").json()["code"] == "not_found"


def test_an_unknown_address_is_a_problem_too(api: Api) -> None:
    for address in ("/api/", "/api/v2/workflows/", "nothing/", "workflows/no-uuid/"):
        answered = api.get(address)
        assert (answered.status_code, answered.json()["code"]) == (404, "not_found")
    answered = api.client.delete("/api/v1/workflows/", headers=api.headers)
    assert (answered.status_code, answered.json()["code"]) == (405, "method_not_allowed")


def test_the_request_id_is_in_the_answer_and_the_problem(api: Api) -> None:
    answered = api.get("nothing/", **{"X-Request-ID": "trace-7"})
    assert answered["X-Request-ID"] == "trace-7"
    assert answered.json()["instance"] == "urn:checkpoint:request:trace-7"


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("given", "kept"),
    [(TRACE, True), (TRACE.replace("00-", "01-", 1), False), ("00-" + "0" * 32 + TRACE[35:], False), ("x" * 55, False)],
)
def test_the_callers_trace_is_kept_with_what_it_submits_and_when_it_resumes(api: Api, given: str, kept: bool) -> None:
    made = api.post("workflows/", driver.document(driver.invoice()), traceparent=given).json()
    resumed = TRACE.replace("01", "00").replace("4bf9", "4bfa")
    api.post(f"{made['url']}resumption/", {"prompt_version": "refund/4"}, traceparent=resumed)
    entries = [
        json.loads(text) for text in AuditEntry.objects.filter(stream_id=made["id"]).values_list("text", flat=True)
    ]
    assert [entry["traceparent"] for entry in entries if entry["verb"] == "resume"] == [resumed]
    assert [entry.get("traceparent") for entry in entries if entry["verb"] == "submit"] == [given if kept else None]
