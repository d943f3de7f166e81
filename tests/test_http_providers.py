"""The allow-list: what may be called, what is promised for it, and that no spelling gets around it."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import RecoveryClass, Reversibility
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import Inconclusive, NotApplied
from checkpoint.planning.argument_schemas import check_schema
from tests.http_driver import SCHEMA, arguments, call, tool, variant_for
from tests.odd_provider import OddProvider, answer
from workers.tools.http_providers import ProvidersFileInvalid, load
from workers.tools.http_request import HttpRequest

SHIPPED = BASE_DIR / "deploy" / "providers.toml"
PUBLIC, PRIVATE = "93.184.215.14", "10.0.0.7"


class Resolver:
    """Stands in for the system's resolver, which is not ours: every name has these addresses the first time."""

    def __init__(self, *addresses: str, afterwards: str = "192.0.2.1") -> None:
        self.asked: list[str] = []
        self._addresses = addresses
        self._afterwards = afterwards
        self._real = socket.getaddrinfo

    def __call__(self, host: str, port: int, *args: Any, **options: Any) -> list[Any]:
        if host[-1].isdigit() or ":" in host:
            return list(self._real(host, port, *args, **options))
        self.asked.append(host)
        addresses = self._addresses if len(self.asked) == 1 else (self._afterwards,)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]


class TestAddresses:
    @pytest.mark.parametrize(
        "addresses",
        [
            ["127.0.0.1"],
            ["10.1.2.3"],
            ["169.254.169.254"],
            ["100.64.0.1"],
            ["0.0.0.0"],
            ["224.0.0.1"],
            ["::1"],
            ["fe80::1%2"],
            ["fc00::1"],
            ["::ffff:127.0.0.1"],
            ["64:ff9b::7f00:1"],
            ["2002:7f00:1::"],
            [PUBLIC, PRIVATE],
        ],
    )
    def test_an_address_that_is_not_public_is_refused_unless_the_entry_allows_it(
        self, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
    ) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", Resolver(*addresses))
        public = tool({"name": "public", "url": "http://provider.example/"})
        with pytest.raises(NotApplied, match="not a public one") as refused:
            public.execute(arguments(method="POST", url="http://provider.example/x"), call(seconds=2))
        assert (refused.value.code, refused.value.permanent) == ("address_refused", True)

    def test_the_checked_address_is_the_one_that_is_called(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A name that resolves to something else the second time cannot lead anywhere: it is resolved once."""
        resolver = Resolver("127.0.0.1")
        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        with OddProvider({"/x": answer(200, {})}) as odd:
            port = odd.host.partition(":")[2]
            named = tool({"name": "odd", "url": f"http://provider.example:{port}/", "private": True})
            named.execute(arguments(method="POST", url=f"http://provider.example:{port}/x"), call(seconds=3))
            assert resolver.asked == ["provider.example"]
            assert odd.received[0].headers["host"] == f"provider.example:{port}"

    def test_the_next_address_is_tried_when_one_does_not_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with OddProvider({"/x": answer(200, {})}) as odd:
            port = odd.host.partition(":")[2]
            monkeypatch.setattr(socket, "getaddrinfo", Resolver("127.0.0.2", "127.0.0.1"))
            named = tool({"name": "odd", "url": f"http://provider.example:{port}/", "private": True})
            named.execute(arguments(method="POST", url=f"http://provider.example:{port}/x"), call(seconds=3))
            assert len(odd.received) == 1


class TestAllowList:
    @pytest.mark.parametrize(
        "url",
        [
            "http://api.example.evil.org/v1/x",
            "http://api.example:8080/v1/x",
            "https://api.example/v1/x",
            "http://api.example/v10/x",
            "http://api.example/v2/x",
            "http://api.example/",
        ],
    )
    def test_other_places_are_refused_before_anything_is_sent(self, url: str) -> None:
        listed = tool({"name": "listed", "url": "http://api.example/v1"})
        with pytest.raises(NotApplied, match="belongs to no provider") as refused:
            listed.execute(arguments(method="POST", url=url), call())
        assert (refused.value.code, refused.value.permanent) == ("not_allowed", True)
        looked_up = arguments(method="POST", url=url, lookup={"url": url, "found": [{"status": 200}]})
        assert isinstance(listed.inspect(looked_up, call()), Inconclusive)

    @pytest.mark.parametrize(
        "url",
        [
            "http://api.example",
            "HTTP://api.example/",
            "http://API.example/",
            "http://api.example@evil.org/",
            "http://user:pw@api.example/",
            "http://api.example/v1/../v2",
            "http://api.example/v1/%2e%2E/v2",
            "http://api.example/v1%2F..%2Fv2",
            "http://api.example/..",
            "http://api.example/v1\\..\\v2",
            "http://api.example/#x",
            "http://api.example/a b",
            "http://api.example/a\n",
            "http://api.example/é",
            "http://{key}.example/",
            "http://api.example/{operation_id}",
            "http://api.example/{other}",
            "ftp://api.example/",
            "file:///etc/passwd",
            "//api.example/",
        ],
    )
    def test_a_url_with_a_second_spelling_is_refused_by_the_schema(self, url: str) -> None:
        with pytest.raises(ArgumentsInvalid):
            arguments(method="POST", url=url)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"headers": {"Authorization": "x"}},
            {"headers": {"cookie": "x"}},
            {"headers": {"X-Api-Key": "x"}},
            {"headers": {"HOST": "x"}},
            {"headers": {"Idempotency-Key": "x"}},
            {"headers": {"X-A": "line\nbreak"}},
            {"headers": {"X A": "x"}},
            {"secret_headers": {"Authorization": "not a name"}},
            {"secret_headers": {"Host": "TOKEN"}},
            {"keep": {"status": "/x"}},
            {"keep": {"n": "no-pointer"}},
            {"method": "TRACE"},
            {"timeout_seconds": 0},
            {"lookup": {"url": "http://a.example/", "found": []}},
            {"lookup": {"url": "http://a.example/", "found": [{"pointer": "/a", "equals": 1, "exists": True}]}},
            {"verify": {"url": "http://a.example/", "expect": [{}]}},
            {"unknown": 1},
        ],
    )
    def test_the_schema_refuses(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ArgumentsInvalid):
            arguments(**{"method": "POST", "url": "http://api.example/", **wrong})

    def test_the_longest_prefix_counts_for_sending_and_for_the_contract(self) -> None:
        listed = tool(
            {"name": "whole", "url": "http://api.example/"},
            {"name": "part", "url": "http://api.example/pay", "honours_key": True},
        )
        for url, name in (("/pay", "part: keyed"), ("/pay/1", "part: keyed"), ("/payments", "whole: opaque")):
            assert variant_for(listed, {"method": "POST", "url": "http://api.example" + url}).name == name


LOOKUP = {"url": "http://api.example/?k={key}", "found": [{"status": 200}]}
VERIFY = {"url": "http://api.example/", "expect": [{"status": 200}]}


class TestVariants:
    def variant(self, promises: dict[str, Any], **given: Any) -> Any:
        listed = tool({"name": "api", "url": "http://api.example/", **promises})
        return variant_for(listed, {"method": "POST", "url": "http://api.example/x", **given})

    @pytest.mark.parametrize(
        ("promises", "given", "name", "recovery"),
        [
            ({}, {"method": "GET"}, "api: read", RecoveryClass.READ_ONLY),
            ({"honours_key": True}, {"method": "HEAD"}, "api: read", RecoveryClass.READ_ONLY),
            ({"honours_key": True}, {}, "api: keyed", RecoveryClass.IDEMPOTENT),
            ({"honours_key": True}, {"lookup": LOOKUP}, "api: keyed", RecoveryClass.IDEMPOTENT),
            (
                {"honours_key": True, "queryable": True},
                {"lookup": LOOKUP, "verify": VERIFY},
                "api: keyed, lookup, verify",
                RecoveryClass.IDEMPOTENT,
            ),
            ({"queryable": True}, {"lookup": LOOKUP}, "api: queryable, lookup", RecoveryClass.QUERYABLE),
            ({"queryable": True}, {"lookup": None, "verify": None}, "api: opaque", RecoveryClass.OPAQUE),
            ({}, {"lookup": LOOKUP, "verify": VERIFY}, "api: opaque, verify", RecoveryClass.OPAQUE),
            ({}, {"url": "http://other.example/"}, "unlisted", RecoveryClass.OPAQUE),
        ],
    )
    def test_a_contract_follows_from_the_operator_s_word_and_the_arguments(
        self, promises: dict[str, Any], given: dict[str, Any], name: str, recovery: RecoveryClass
    ) -> None:
        variant = self.variant(promises, **given)
        assert (variant.name, variant.contract.recovery) == (name, recovery)
        assert variant.contract.can_inspect == ("lookup" in name)
        assert variant.contract.can_verify == ("verify" in name)

    def test_times_and_words_are_the_operator_s(self) -> None:
        contract = self.variant(
            {
                "honours_key": True,
                "key_lifetime_seconds": 86400.0,
                "settle_seconds": 9.0,
                "deadline_seconds": 12.0,
                "reversibility": "compensable",
                "where_to_look": "The ledger.",
                "link": "http://api.example/{key}",
            }
        ).contract
        assert (contract.key_lifetime, contract.settle, contract.deadline) == (86400.0, 9.0, 12.0)
        assert (contract.where_to_look, contract.link) == ("The ledger.", "http://api.example/{key}")
        assert contract.reversibility is Reversibility.COMPENSABLE
        assert self.variant({"reversibility": "compensable"}, method="GET").contract.reversibility == "none_needed"

    def test_names_are_unique_and_the_last_variant_matches_everything(self) -> None:
        variants = load(SHIPPED).variants()
        names = [variant.name for variant in variants]
        assert len(set(names)) == len(names)
        assert variants[-1].when == {}


class TestFile:
    def test_the_shipped_file_says_what_the_sandbox_does(self) -> None:
        listed = HttpRequest(load(SHIPPED))
        base = "http://127.0.0.1:7180"
        given = {"method": "POST", "lookup": LOOKUP}
        recovery = {
            path: variant_for(listed, {**given, "url": base + path}).contract.recovery
            for path in ("/billing/invoices", "/tickets", "/charges", "/refunds", "/site/x", "/switch")
        }
        assert recovery == {
            "/billing/invoices": RecoveryClass.IDEMPOTENT,
            "/tickets": RecoveryClass.QUERYABLE,
            "/charges": RecoveryClass.OPAQUE,
            "/refunds": RecoveryClass.OPAQUE,
            "/site/x": RecoveryClass.QUERYABLE,
            "/switch": RecoveryClass.OPAQUE,
        }

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("[[provider]]\nname = 'a'", "number 1: url"),
            ("[[provider]]\nname = 'a'\nurl = 'http://a.example/'\nhonors_key = true", "honors_key"),
            ("[[provider]]\nname = 'a'\nurl = 'http://a.example/'\nprivate = 'yes'", "private"),
            ("[[provider]]\nname = 'a'\nurl = 'http://a.example/../'", "url"),
            ("[[provider]]\nname = 'a'\nurl = 'http://a.example/'\nsettle_seconds = inf", "settle_seconds"),
            ("[[provider]]\nname = 'a'\nurl = 'http://a.example/'\nlink = 'javascript:alert(1)'", "link"),
            (
                "[[provider]]\nname = 'a'\nurl = 'http://a.example/'\nhonours_key = true\nnot_applied_statuses = [409]",
                "409",
            ),
            ("[[provider]]\nname = 'a'\nurl = 'http://a.example/'\n" * 2, "more than one"),
            ("[[providers]]\nname = 'a'", "providers"),
            ("[[provider", "CHECKPOINT_HTTP_PROVIDERS"),
        ],
    )
    def test_a_wrong_file_is_refused_with_the_place(self, tmp_path: Path, text: str, reason: str) -> None:
        file = tmp_path / "providers.toml"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ProvidersFileInvalid, match=re.escape(reason)) as refused:
            load(file)
        assert str(file) in str(refused.value)

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ProvidersFileInvalid, match="CHECKPOINT_HTTP_PROVIDERS"):
            load(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("wrong", "path", "words"),
    [
        ({"url": "http://API.example/"}, "/url", "the host in small letters"),
        ({"headers": {"Cookie": "x"}}, "/headers", "credentials belong into secret_headers"),
        ({"verify": {"url": "http://a.example/", "expect": [{"a": 1}]}}, "/verify/expect/0", "a condition of one form"),
    ],
)
def test_what_is_refused_is_said_in_words_and_not_in_patterns(wrong: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        arguments(**{"method": "POST", "url": "http://api.example/", **wrong})
    (fault,) = refused.value.faults
    assert (fault.path, words in fault.message, "^" in fault.message) == (path, True, False)


def test_the_schema_is_one_that_the_core_can_use() -> None:
    check_schema(SCHEMA)
