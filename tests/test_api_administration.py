"""Policies, bulk jobs and the audit over the API."""

from __future__ import annotations

import json

import pytest

from approvals.bulk import work
from approvals.rules import policy_versions
from checkpoint.models import Case
from tests import factories
from tests.api_driver import Api

pytestmark = pytest.mark.usefixtures("database")

ASK = "rules:\n- name: ask\n  set:\n    approval: {needed: 1}\n"


def admin() -> Api:
    """Somebody who may put policies in force and search the audit."""
    return Api.of(factories.person("root", groups=["Admin"], teams=[factories.team("Billing")]))


def test_a_policy_is_tried_then_put_in_force_then_read() -> None:
    api, step = admin(), factories.step(factories.workflow())
    before = policy_versions.in_force().number
    tried = api.post("policies/trial/", {"text": ASK}).json()
    assert (tried["compared_with"], tried["looked_at"]) == (before, 1)
    assert tried["changes"][0]["workflows"] == [str(step.workflow_id)]
    assert policy_versions.in_force().number == before, "a trial changes nothing"
    sent = {"text": ASK, "reason": "Ask about everything.", "seen": before}
    stored = api.post("policies/", sent)
    assert stored.status_code == 201, stored.content
    assert (stored.json()["text"], stored.json()["author"]) == (ASK, "root")
    assert api.get("policies/").json()["items"][0]["number"] == before + 1
    assert api.get(stored["Location"]).json() == stored.json()
    assert api.get("policies/9999999999/").status_code == 404


def test_a_policy_is_refused_for_what_is_wrong_with_it() -> None:
    api, seen = admin(), policy_versions.in_force().number
    broken = api.post("policies/", {"text": "rules: [{nme: x}]", "reason": "x", "seen": seen})
    assert (broken.status_code, broken.json()["code"]) == (422, "policy_invalid")
    assert broken.json()["faults"]
    assert api.post("policies/trial/", {"text": "rules: 3"}).json()["code"] == "policy_invalid"
    assert api.post("policies/", {"text": ASK, "reason": "x", "seen": seen - 1}).json()["code"] == "stale_view"
    assert api.post("policies/", {"text": ASK, "reason": " ", "seen": seen}).status_code == 422
    assert Api.of(factories.person("bot", groups=["Agent"])).post("policies/", {
        "text": ASK, "reason": "x", "seen": seen
    }).status_code == 403  # fmt: skip
    assert policy_versions.in_force().number == seen


def test_a_bulk_job_is_prepared_started_and_read() -> None:
    cases = [factories.case(), factories.case()]
    api = Api.of(factories.person("ann", groups=["Approver"], teams=[factories.team("Billing")]))
    sent = {"kind": "confirm", "reason": "I looked all of them up.", "cases": [str(case.pk) for case in cases]}
    prepared = api.post("bulk-jobs/", sent)
    assert prepared.status_code == 201, prepared.content
    assert (prepared.json()["status"], prepared.json()["count"]) == ("draft", 2)
    assert Case.objects.filter(status="open").count() == 2, "nothing is answered yet"
    address = prepared["Location"]
    assert api.post(f"{address}start/").json()["status"] == "running"
    work.work(seconds=60)
    assert api.get(address).json()["status"] == "done"
    items = api.get(f"{address}items/").json()["items"]
    assert [item["result"] for item in items] == ["done", "done"]
    assert api.post(f"{address}abort/").json()["code"] == "bulk_job_closed"
    assert [job["id"] for job in api.get("bulk-jobs/").json()["items"]] == [prepared.json()["id"]]
    other = Api.of(factories.person("bob", groups=["Approver"], teams=[factories.team("Billing")]))
    assert other.get(address).status_code == 404
    assert api.post("bulk-jobs/", sent | {"cases": ["x"]}).status_code == 422
    assert api.post("bulk-jobs/", sent | {"kind": "dance"}).status_code == 422


def test_the_audit_is_searched_and_exported_by_who_may() -> None:
    api = admin()
    workflow = factories.workflow()
    factories.audited(workflow, "note", "workflow", reason="for a test")
    found = api.get(f"audit/?stream={workflow.pk}").json()
    (entry,) = found["items"]
    assert (entry["verb"], entry["intact"], json.loads(entry["text"])["reason"]) == ("note", True, "for a test")
    assert api.get(f"audit/{workflow.pk}/{entry['seq']}/").json() == entry
    assert api.get(f"audit/{workflow.pk}/{10**25}/").status_code == 404
    lines = b"".join(api.get(f"audit/export/?stream={workflow.pk}").streaming_content).decode().splitlines()
    assert [json.loads(line)["record"] for line in lines] == ["export", "entry", "end"]
    for query in ("?stream=x", "?after=x", "?since=never"):
        assert api.get(f"audit/{query}").status_code == 400, query
    assert api.get("audit/export/?form=pdf").status_code == 400
    operator = Api.of(factories.person("olga", groups=["Operator"]))
    assert operator.get("audit/").status_code == operator.get("audit/export/").status_code == 403
