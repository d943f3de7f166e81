"""More requests at once than a web process has connections: they wait, are refused clearly, and take nobody else's."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from checkpoint.config import environment
from tests import factories
from tests.api_driver import Api

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def one_connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A pool of one connection for this process, whose waiters give up at once."""
    monkeypatch.setattr(environment, "POOL_PATIENCE_SECONDS", 0.2)
    options = environment.database("postgresql://u@h/d", pool=1)["OPTIONS"]
    connection.close()
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "pool", options["pool"])
    yield
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL has it, the stub names any database


def answers(ask: Any) -> list[Any]:
    """What one gets on another thread while this one has the only connection."""
    connection.ensure_connection()
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(ask()))
    thread.start()
    thread.join()
    return got


def test_a_program_is_told_to_come_again(one_connection: None) -> None:
    api = Api.of(factories.person("bot", groups=["Agent"], teams=[factories.team("Billing")]))
    (refused,) = answers(lambda: api.get("workflows/"))
    assert (refused.status_code, refused.json()["code"], refused["Retry-After"]) == (503, "busy", "1")


def test_a_person_is_told_so_too(one_connection: None) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(factories.person("olivia", groups=["Operator"]))
    (refused,) = answers(lambda: client.get("/"))
    assert refused.status_code == 503
    assert "Nothing was done" in refused.content.decode()
