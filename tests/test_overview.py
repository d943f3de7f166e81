"""The overview, the catalogue of tools and the page of tokens: what they show, to whom, and at what cost."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkpoint import clock
from checkpoint.contracts import Contract, RecoveryClass, Reversibility
from checkpoint.errors import TokenRefused
from checkpoint.explaining import crash_words
from checkpoint.identity.tokens import check
from checkpoint.models import ApiToken, Workflow
from checkpoint.pictures import installation
from checkpoint.states import StepStatus, WorkflowStatus
from tests import factories
from tests.console_driver import signed_in

pytestmark = pytest.mark.usefixtures("database")


def ada(group: str = "Operator") -> User:
    return factories.person("ada", groups=[group], teams=[factories.team()])


def test_the_overview_counts_what_the_person_sees() -> None:
    for status in (StepStatus.STARTED, StepStatus.FAILED, StepStatus.COMMITTED):
        factories.step(factories.workflow(), status)
    factories.step(factories.workflow(team=factories.team("Legal")), StepStatus.FAILED)
    factories.case(opened_at=clock.now() - timedelta(days=3))
    person = ada()
    assert installation.states(person).counts[WorkflowStatus.NEEDS_REVIEW] == 1
    assert installation.states(person).total == 4
    groups = installation.waiting(person, [(timedelta(hours=1), "new"), (timedelta(days=1), "soon")])
    assert [(group.words, group.cases, group.requests) for group in groups] == [
        ("new", 0, 0), ("soon", 0, 0), ("longer", 1, 0),
    ]  # fmt: skip
    activity = installation.activity(person)
    assert activity.since is None
    assert sum(count for _, count in activity.minutes) == 4
    assert {tool.name: dict(tool.endings) for tool in activity.tools} == {
        "card.charge": {"running": 1, "refused": 1, "receipt": 1, "lost": 1}
    }
    text = signed_in(person).get("/overview/").text
    assert "lock lost" in text, "the workers of this test hold no locks"
    assert "Legal" not in text


def test_of_large_tables_the_newest_are_looked_at_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "WORKFLOWS_LOOKED_AT", 2)
    monkeypatch.setattr(installation, "ATTEMPTS_LOOKED_AT", 2)
    for _ in range(3):
        factories.step(factories.workflow(), StepStatus.STARTED)
    client = signed_in(ada())
    client.get("/overview/")
    with CaptureQueriesContext(connection) as captured:
        text = client.get("/overview/").text
    assert "Of the newest 2 that you see" in text
    assert "Only the newest 2 attempts are looked at" in text
    assert len(captured) < 25
    assert not any('"arguments"' in query["sql"] or '"goal"' in query["sql"] for query in captured)


def test_nothing_yet_and_no_worker_is_said() -> None:
    text = signed_in(ada()).get("/overview/").text
    assert "No worker runs" in text
    assert "No call was made" in text
    assert "nothing waits for a worker" in text


def test_what_is_due_is_counted() -> None:
    due = factories.workflow()
    Workflow.objects.filter(pk=due.pk).update(wake_at=clock.now() - timedelta(seconds=30))
    found = installation.health()
    assert (found.due, found.behind > 29) == (1, True)
    assert found.connections > 0
    assert "1 workflow can move" in signed_in(ada()).get("/overview/").text


def test_the_catalogue_is_made_from_what_was_published() -> None:
    factories.tool("card.charge")
    client = signed_in(ada())
    assert "card.charge@1" in client.get("/tools/").text
    page = client.get("/tools/card.charge/").text
    assert "never sends it again" in page
    assert "irreversible" in page
    assert client.get("/tools/no.such/").status_code == 404
    assert client.get("/tools/%00/").status_code == 404


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (Contract(RecoveryClass.READ_ONLY, Reversibility.NONE_NEEDED), "It is run again"),
        (Contract(RecoveryClass.OPAQUE, Reversibility.IRREVERSIBLE), "A person is asked"),
        (Contract(RecoveryClass.QUERYABLE, Reversibility.COMPENSABLE, can_inspect=True), "35 s after it started"),
        (Contract(RecoveryClass.IDEMPOTENT, Reversibility.COMPENSABLE), "once the first can no longer land"),
        (
            Contract(RecoveryClass.IDEMPOTENT, Reversibility.COMPENSABLE, key_lifetime=600.0, can_inspect=True),
            "for 600 s after the first. Past that it is looked up",
        ),
    ],
)
def test_what_a_crash_means_follows_the_contract(contract: Contract, expected: str) -> None:
    assert expected in crash_words.after_crash(contract)


def issue(client: Client, **fields: Any) -> Any:
    sent = {"account": "bot", "name": "the agent", "scopes": ["read", "submit"], "days": "30", "reason": "Go live."}
    form = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get("/tokens/").text)
    assert form is not None
    return client.post("/tokens/", {**sent, **fields, "csrfmiddlewaretoken": form[1]})


def test_a_token_is_shown_once_and_can_be_revoked() -> None:
    factories.person("bot", groups=["Agent"])
    client = signed_in(ada("Admin"))
    answer = issue(client)
    (text,) = set(re.findall(r"cp_[\w-]{40,}", answer.text))
    assert check(text).account.username == "bot"
    assert answer.headers["Cache-Control"] == "private, no-store"
    page = client.get("/tokens/").text
    assert text not in page
    token = ApiToken.objects.get()
    csrf = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
    address = f"/tokens/{token.pk}/revocation/"
    assert client.post(address, {"reason": " ", "csrfmiddlewaretoken": csrf}).status_code == 422
    assert check(text).pk == token.pk
    assert (
        "is refused from its next request on"
        in client.post(address, {"reason": "Leaked.", "csrfmiddlewaretoken": csrf}).text
    )
    with pytest.raises(TokenRefused):
        check(text)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"account": "nobody"}, "There is no such account."),
        ({"name": " "}, "what will use the token"),
        ({"scopes": []}, "choose some of"),
        ({"scopes": ["everything"]}, "choose some of"),
        ({"days": "0"}, "lives up to"),
        ({"days": "9999"}, "lives up to"),
        ({"reason": ""}, "say in a sentence why"),
    ],
)
def test_what_is_wrong_with_a_token_is_said_and_nothing_is_issued(fields: dict[str, Any], said: str) -> None:
    factories.person("bot", groups=["Agent"])
    answer = issue(signed_in(ada("Admin")), **fields)
    assert answer.status_code == 422
    assert said in answer.text
    assert not ApiToken.objects.exists()


def test_only_administrators_see_tokens() -> None:
    client = signed_in(ada())
    assert client.get("/tokens/").status_code == 403
    assert "/tokens/" not in client.get("/overview/").text
