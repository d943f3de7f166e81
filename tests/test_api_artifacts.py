"""Artifacts over the API: brought, listed and fetched, checked against their hash, by who sees the workflow."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage

from checkpoint.models import Artifact
from checkpoint.storage import stored_bytes
from tests import factories
from tests.api_driver import Api, token_of

pytestmark = pytest.mark.usefixtures("database")

KIND = {"Content-Type": "text/csv"}


@pytest.fixture
def bot() -> User:
    """An agent's account."""
    return factories.person("bot", groups=["Agent"], teams=[factories.team("Billing")])


@pytest.fixture
def workflow(bot: User) -> str:
    """A workflow of its team."""
    return str(factories.step(factories.workflow(team=bot.teams.get())).workflow_id)


def digest(content: bytes) -> str:
    """As RFC 9530 writes it."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def test_what_was_brought_is_listed_and_fetched(bot: User, workflow: str) -> None:
    api, content = Api.of(bot), b"customer;cents\nacme;5\n"
    answered = api.post(
        f"workflows/{workflow}/artifacts/?name=rows.csv", content, **KIND, **{"Content-Digest": digest(content)}
    )
    assert answered.status_code == 201, answered.content
    shown = answered.json()
    assert (shown["sha256"], shown["size"]) == (hashlib.sha256(content).hexdigest(), len(content))
    assert (shown["name"], shown["media_type"]) == ("rows.csv", "text/csv")
    assert api.get(f"workflows/{workflow}/artifacts/").json()["items"] == [shown]
    assert api.get(answered["Location"]).json() == shown
    fetched = api.get(shown["content_url"], Accept="application/octet-stream")
    assert b"".join(fetched.streaming_content) == content
    assert "attachment" in fetched["Content-Disposition"]
    again = api.post(f"workflows/{workflow}/artifacts/?name=rows.csv", content, **KIND)
    assert again.json() == shown


def test_a_repetition_is_the_same_and_another_body_under_the_key_is_refused(bot: User, workflow: str) -> None:
    api, address = Api.of(bot), f"workflows/{workflow}/artifacts/?name=a"
    first = api.post(address, b"one", key="k", **KIND)
    again = api.post(address, b"one", key="k", **KIND)
    assert (again["Idempotency-Replayed"], again.json()) == ("true", first.json())
    assert api.post(address, b"two", key="k", **KIND).status_code == 422
    assert Artifact.objects.count() == 1


@pytest.mark.parametrize(
    ("query", "headers", "status", "code"),
    [
        ("", {}, 422, "action_incomplete"),
        ("?name=" + "x" * 256, {}, 422, "action_incomplete"),
        ("?name=a", {"Content-Digest": digest(b"other")}, 422, "action_incomplete"),
        ("?name=a", {"Content-Digest": "md5=:x:"}, 422, "action_incomplete"),
    ],
)
def test_what_is_not_as_it_should_be_is_not_kept(
    bot: User, workflow: str, query: str, headers: dict[str, str], status: int, code: str
) -> None:
    answered = Api.of(bot).post(f"workflows/{workflow}/artifacts/{query}", b"some", **KIND, **headers)
    assert (answered.status_code, answered.json()["code"]) == (status, code)
    assert not Artifact.objects.exists()


def test_too_much_is_refused(bot: User, workflow: str, settings: Any) -> None:
    settings.CHECKPOINT_LARGEST_ARTIFACT = 10
    settings.CHECKPOINT_ARTIFACTS_PER_WORKFLOW = 15
    api = Api.of(bot)
    answered = api.post(f"workflows/{workflow}/artifacts/?name=a", b"x" * 11, **KIND)
    assert (answered.status_code, answered.json()["code"]) == (413, "body_too_large")
    assert api.post(f"workflows/{workflow}/artifacts/?name=a", b"x" * 10, **KIND).status_code == 201
    answered = api.post(f"workflows/{workflow}/artifacts/?name=b", b"y" * 10, **KIND)
    assert (answered.status_code, answered.json()["code"]) == (413, "artifact_too_large")


def test_who_does_not_see_the_workflow_sees_none_of_it(bot: User, workflow: str) -> None:
    shown = Api.of(bot).post(f"workflows/{workflow}/artifacts/?name=a", b"one", **KIND).json()
    eve = Api.of(factories.person("eve", groups=["Agent"], teams=[factories.team("Legal")]))
    for address in (shown["url"], shown["content_url"], f"workflows/{workflow}/artifacts/"):
        assert eve.get(address).status_code == 404
    assert eve.post(f"workflows/{workflow}/artifacts/?name=a", b"one", **KIND).status_code == 404
    auditor = Api.of(factories.person("otto", groups=["Auditor"]))
    assert auditor.post(f"workflows/{workflow}/artifacts/?name=a", b"one", **KIND).status_code == 403
    assert Api.of(bot, ["read"]).post(f"workflows/{workflow}/artifacts/?name=b", b"x", **KIND).status_code == 403


def test_damaged_bytes_are_not_handed_out(bot: User, workflow: str) -> None:
    api = Api.of(bot)
    shown = api.post(f"workflows/{workflow}/artifacts/?name=a", b"one", **KIND).json()
    path = default_storage.path(stored_bytes.path_of(shown["sha256"]))
    os.chmod(path, 0o600)
    with open(path, "wb") as file:
        file.write(b"two")
    answered = api.get(shown["content_url"])
    assert (answered.status_code, answered.json()["code"]) == (500, "artifact_mismatch")


def test_megabytes_pass_through_the_real_server(bot: User, workflow: str, web_server: str) -> None:
    content = os.urandom(5_000_000)
    headers = {"Authorization": f"Bearer {token_of(bot)}", "Idempotency-Key": "big", "Content-Type": "image/png"}
    address = f"{web_server}/api/v1/workflows/{workflow}/artifacts/?name=big"
    shown = httpx.post(address, content=content, headers=headers, timeout=30).json()
    fetched = httpx.get(shown["content_url"], headers=headers, timeout=30)
    assert (fetched.content == content, fetched.headers["Content-Type"]) == (True, "application/octet-stream")
