"""How often a token may call: one count for all web processes, exact however many ask at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.core.cache import cache
from django.db import connection

from checkpoint.api.authentication import RateOfToken
from checkpoint.identity import request_rates
from checkpoint.models import ApiToken
from tests import factories
from tests.api_driver import Api, token_of
from tests.time_driver import MovableTime

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def token() -> UUID:
    """A token's id."""
    token_of(factories.person("bot"))
    return ApiToken.objects.get().pk


def test_a_burst_is_let_in_and_then_what_the_rate_gives_back(token: UUID, time_machine: MovableTime) -> None:
    taken = [request_rates.take(token, most=3, seconds=3600) for _ in range(4)]
    assert taken[:3] == [0, 0, 0]
    assert 1190 < taken[3] <= 1200
    time_machine.pass_seconds(1201)
    assert request_rates.take(token, most=3, seconds=3600) == 0
    assert request_rates.take(token, most=3, seconds=3600) > 0
    time_machine.pass_seconds(100_000)
    assert [request_rates.take(token, most=3, seconds=3600) for _ in range(3)] == [0, 0, 0], "no more is saved up"
    assert request_rates.take(token, most=3, seconds=3600) > 0


def test_of_many_at_once_no_more_are_let_in_than_may(token: UUID) -> None:
    def ask(_: int) -> bool:
        try:
            return request_rates.take(token, most=10, seconds=3600) == 0
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 10


def test_a_caller_that_is_too_fast_is_told_when_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RateOfToken, "get_rate", lambda self: "2/hour")
    api = Api.of(factories.person("bot"))
    assert [api.get("tools/").status_code for _ in range(2)] == [200, 200]
    cache.clear()  # as another web process has it
    refused = api.get("tools/")
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert 1700 < int(refused["Retry-After"]) <= 1801
    assert Api.of(factories.person("bob")).get("tools/").status_code == 200, "each token has its own"
