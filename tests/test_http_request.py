"""`http.request` against the real sandbox and against a provider with bad days."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import (
    ARTIFACT_MISMATCH,
    Absent,
    Found,
    Inconclusive,
    NotApplied,
    NotVisible,
    Pending,
    Receipt,
    Visible,
)
from tests import submissions
from tests.http_driver import arguments, call, committed, tool, tool_from
from tests.odd_provider import OddProvider, Received, answer, head
from tests.sandbox_driver import SandboxProcess, wait_for
from tests.test_artifacts import BYTES, SHA256, files, folder, kept
from workers.registry import Call
from workers.tools.http_arguments import HttpArguments
from workers.tools.http_request import HttpRequest, OutcomeUnknown

__all__ = ["folder"]


@pytest.fixture
def odd() -> Iterator[OddProvider]:
    with OddProvider() as provider:
        yield provider


@pytest.fixture
def to_odd(odd: OddProvider) -> HttpRequest:
    return tool({"name": "odd", "url": f"{odd.url}/", "private": True})


@pytest.fixture
def to_sandbox(sandbox: SandboxProcess, tmp_path: Path) -> HttpRequest:
    return tool_from(sandbox.providers_toml(), tmp_path)


def invoice(sandbox: SandboxProcess, **more: Any) -> dict[str, Any]:
    """An invoice with lookup and verify, as an agent writes it."""
    return {
        "method": "POST",
        "url": f"{sandbox.url}/billing/invoices",
        "json": {"customer": "acme", "amount": 120},
        "keep": {"number": "/number", "amount": "/amount"},
        "operation_id": "/number",
        "lookup": {
            "url": f"{sandbox.url}/billing/invoices?key={{key}}",
            "found": [{"pointer": "/count", "equals": 1}],
            "absent": [{"pointer": "/count", "equals": 0}, {"pointer": "/in_progress", "equals": False}],
            "pending": [{"pointer": "/count", "equals": 0}, {"pointer": "/in_progress", "equals": True}],
            "operation_id": "/invoices/0/number",
            "keep": {"number": "/invoices/0/number"},
            "compare": {"/amount": "/invoices/0/amount", "/customer": "/invoices/0/customer"},
        },
        "verify": {
            "url": f"{sandbox.url}/billing/invoices/{{operation_id}}",
            "expect": [{"pointer": "/amount", "equals_sent": "/amount"}, {"pointer": "/key", "equals": "{key}"}],
            "keep": {"number": "/number"},
        },
        **more,
    }


class TestAnArtifactAsBody:
    def test_its_bytes_go_out_with_their_length(self, to_odd: HttpRequest, odd: OddProvider, folder: Path) -> None:
        content = BYTES * 20  # more than one chunk
        digest = hashlib.sha256(content).hexdigest()
        odd.scripts["/x"] = answer(201, {"sha256": digest})
        made = call_with(content)
        verify = {"url": f"{odd.url}/x", "expect": [{"pointer": "/sha256", "equals_sent": "/sha256"}]}
        given = with_artifact(odd, digest, headers={"content-type": "text/csv"}, verify=verify)
        receipt = to_odd.execute(given, made)
        (post,) = odd.received
        assert post.body == content
        assert (post.headers["content-length"], post.headers["content-type"]) == (str(len(content)), "text/csv")
        assert "transfer-encoding" not in post.headers
        assert isinstance(to_odd.verify(given, committed(made, receipt)), Visible)

    def test_of_a_damaged_one_nothing_is_sent(self, to_odd: HttpRequest, odd: OddProvider, folder: Path) -> None:
        made = call_with(BYTES)
        files(folder)[0].write_bytes(BYTES[:-1] + b"x")
        with pytest.raises(NotApplied) as refused:
            to_odd.execute(with_artifact(odd, SHA256), made)
        assert (refused.value.code, refused.value.permanent) == (ARTIFACT_MISMATCH, True)
        assert odd.received == []

    def test_there_is_one_body_at_most(self, odd: OddProvider) -> None:
        two: list[dict[str, Any]] = [{"json": {}}, {"form": {"a": "b"}}]
        for more in two:
            with pytest.raises(ArgumentsInvalid):
                with_artifact(odd, SHA256, **more)


def with_artifact(odd: OddProvider, sha256: str, **more: Any) -> HttpArguments:
    return arguments(method="PUT", url=f"{odd.url}/x", body={"artifact": f"sha256:{sha256}"}, **more)


def call_with(content: bytes) -> Call:
    """A call of a workflow that has an artifact of these bytes."""
    workflow = submissions.submitted()
    kept(workflow, content)
    return replace(call(), workflow_id=str(workflow.pk))


class TestAgainstTheSandbox:
    def test_an_invoice_is_made_found_and_verified(self, sandbox: SandboxProcess, to_sandbox: HttpRequest) -> None:
        given, made = arguments(**invoice(sandbox)), call()
        receipt = to_sandbox.execute(given, made)
        assert receipt.facts == {"status": 201, "number": receipt.operation_id, "amount": 120}
        found = to_sandbox.inspect(given, made)
        assert isinstance(found, Found)
        assert (found.receipt.operation_id, found.receipt.arguments_match) == (receipt.operation_id, True)
        seen = to_sandbox.verify(given, committed(made, receipt))
        assert seen == Visible({"status": 200, "number": receipt.operation_id})

    def test_a_lost_answer_leaves_the_outcome_unknown_and_the_same_key_gets_the_first_invoice(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest
    ) -> None:
        given, made = arguments(**invoice(sandbox)), call()
        sandbox.fault("drop_after_work", "/billing/invoices")
        with pytest.raises(OutcomeUnknown):
            to_sandbox.execute(given, made)
        receipt = to_sandbox.execute(given, made)
        assert receipt.facts["replayed"] is True
        assert sandbox.count("invoice", key=made.key) == 1

    def test_a_lookup_tells_absent_and_pending_apart(self, sandbox: SandboxProcess, to_sandbox: HttpRequest) -> None:
        given, made = arguments(**invoice(sandbox)), call()
        assert isinstance(to_sandbox.inspect(given, made), Absent)
        sandbox.fault("work_late", "/billing/invoices", seconds=30)
        with pytest.raises(OutcomeUnknown):
            to_sandbox.execute(given, call(key=made.key, seconds=0.2))
        assert isinstance(to_sandbox.inspect(given, made), Pending)

    def test_a_key_in_progress_leaves_the_outcome_unknown(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest
    ) -> None:
        given, made = arguments(**invoice(sandbox)), call()
        sandbox.fault("work_late", "/billing/invoices", seconds=30)
        with pytest.raises(OutcomeUnknown):
            to_sandbox.execute(given, call(key=made.key, seconds=0.2))
        with pytest.raises(OutcomeUnknown, match=r"409.*in progress"):
            to_sandbox.execute(given, made)

    def test_a_replayed_cached_failure_is_recognised_and_named(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest
    ) -> None:
        given, made = arguments(**invoice(sandbox)), call()
        sandbox.fault("cached_failure", "/billing/invoices", status=400)
        with pytest.raises(NotApplied):
            to_sandbox.execute(given, made)
        with pytest.raises(OutcomeUnknown, match="cached this failure"):
            to_sandbox.execute(given, made)

    def test_an_effect_with_other_arguments_is_found_as_such(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest
    ) -> None:
        made = call()
        to_sandbox.execute(arguments(**invoice(sandbox)), made)
        other = arguments(**invoice(sandbox, json={"customer": "acme", "amount": 121}))
        with pytest.raises(OutcomeUnknown, match="422"):
            to_sandbox.execute(other, made)
        found = to_sandbox.inspect(other, made)
        assert isinstance(found, Found)
        assert not found.receipt.arguments_match
        assert found.receipt.facts["differing"] == ["/amount"]

    def test_a_hidden_effect_is_not_visible(self, sandbox: SandboxProcess, to_sandbox: HttpRequest) -> None:
        given, made = arguments(**invoice(sandbox)), call()
        sandbox.fault("hide_effect", "/billing/invoices")
        receipt = to_sandbox.execute(given, made)
        seen = to_sandbox.verify(given, committed(made, receipt))
        assert isinstance(seen, NotVisible)
        assert "404" in seen.message
        sandbox.clear()
        assert isinstance(to_sandbox.verify(given, committed(made, receipt)), Visible)

    def test_the_key_becomes_a_ticket_s_reference_by_its_placeholder(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest
    ) -> None:
        given = arguments(
            method="POST",
            url=f"{sandbox.url}/tickets",
            json={"reference": "{key}", "tags": ["key {key}"]},
            lookup={
                "url": f"{sandbox.url}/tickets?reference={{key}}",
                "found": [{"pointer": "/tickets/0/reference", "equals": "{key}"}],
                "compare": {"/tags": "/tickets/0/tags"},
            },
        )
        made = call()
        to_sandbox.execute(given, made)
        found = to_sandbox.inspect(given, made)
        assert isinstance(found, Found)
        assert found.receipt.arguments_match

    def test_two_tickets_under_one_reference_are_inconclusive_where_one_is_expected(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest
    ) -> None:
        given = arguments(
            method="POST",
            url=f"{sandbox.url}/tickets",
            json={"reference": "{key}"},
            lookup={
                "url": f"{sandbox.url}/tickets?reference={{key}}",
                "found": [{"pointer": "/count", "equals": 1}],
                "absent": [{"pointer": "/count", "equals": 0}],
            },
        )
        made = call()
        for _ in range(2):
            to_sandbox.execute(given, made)
        found = to_sandbox.inspect(given, made)
        assert isinstance(found, Inconclusive)
        assert "none of found, absent and pending" in found.message

    def test_a_failing_lookup_is_inconclusive(self, sandbox: SandboxProcess, to_sandbox: HttpRequest) -> None:
        given, made = arguments(**invoice(sandbox)), call()
        for fault in ("refuse", "drop_before_work"):
            sandbox.fault(fault, "/billing/invoices", method="GET")
            assert isinstance(to_sandbox.inspect(given, made), Inconclusive)

    def test_a_put_page_is_read_back(self, sandbox: SandboxProcess, to_sandbox: HttpRequest) -> None:
        made = call()
        given = arguments(
            method="PUT",
            url=f"{sandbox.url}/site/{made.key}",
            json={"title": "Release notes"},
            verify={
                "url": f"{sandbox.url}/site/{made.key}",
                "expect": [{"status": 200}, {"pointer": "/title", "contains": "notes"}],
            },
        )
        receipt = to_sandbox.execute(given, made)
        assert isinstance(to_sandbox.verify(given, committed(made, receipt)), Visible)


class TestWhatWasSent:
    def test_nobody_listening_means_that_nothing_was_sent(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.__exit__()
        with pytest.raises(NotApplied) as refused:
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call())
        assert (refused.value.code, refused.value.permanent) == ("never_sent", False)

    def test_an_unknown_name_means_that_nothing_was_sent(self) -> None:
        nowhere = tool({"name": "nowhere", "url": "http://does-not-exist.invalid/"})
        with pytest.raises(NotApplied) as refused:
            nowhere.execute(arguments(method="POST", url="http://does-not-exist.invalid/x"), call())
        assert refused.value.code == "never_sent"

    def test_a_failed_tls_handshake_means_that_nothing_was_sent(self, odd: OddProvider) -> None:
        https = tool({"name": "odd", "url": f"https://{odd.host}/", "private": True})
        with pytest.raises(NotApplied) as refused:
            https.execute(arguments(method="POST", url=f"https://{odd.host}/x"), call(seconds=0.5))
        assert refused.value.code == "never_sent"
        assert odd.received == []

    def test_a_deadline_that_passed_before_the_first_byte_means_that_nothing_was_sent(
        self, to_odd: HttpRequest, odd: OddProvider
    ) -> None:
        with pytest.raises(NotApplied):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call(seconds=-1))
        assert odd.received == []

    def test_a_connection_lost_after_the_request_leaves_the_outcome_unknown(
        self, to_odd: HttpRequest, odd: OddProvider
    ) -> None:
        odd.scripts["/x"] = lambda request, connection: None
        with pytest.raises(OutcomeUnknown):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call())

    def test_a_body_cut_short_leaves_the_outcome_unknown(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/x"] = lambda request, connection: connection.sendall(head(201, 100) + b"{")
        with pytest.raises(OutcomeUnknown):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call())

    def test_the_key_and_the_canonical_body_go_out_and_a_read_carries_no_key(
        self, to_odd: HttpRequest, odd: OddProvider
    ) -> None:
        odd.scripts["/x"] = answer(200, {})
        made = call()
        to_odd.execute(arguments(method="POST", url=f"{odd.url}/x", json={"b": 1, "a": "é"}), made)
        to_odd.execute(arguments(method="GET", url=f"{odd.url}/x"), made)
        post, get = odd.received
        assert (post.headers["idempotency-key"], post.body) == (made.key, '{"a":"é","b":1}'.encode())
        assert post.headers["content-type"] == "application/json"
        assert "idempotency-key" not in get.headers

    def test_a_given_content_type_takes_the_place_of_the_usual_one(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(200, {})
        headers = {"content-type": "application/vnd.api+json"}
        to_odd.execute(arguments(method="POST", url=f"{odd.url}/x", json={}, headers=headers), call())
        assert odd.received[0].headers["content-type"] == "application/vnd.api+json"


class TestStatuses:
    @pytest.mark.parametrize("status", [301, 400, 403, 404, 408, 409, 422, 429, 500, 502, 503])
    def test_a_status_that_is_not_declared_proves_nothing(
        self, to_odd: HttpRequest, odd: OddProvider, status: int
    ) -> None:
        odd.scripts["/x"] = answer(status, {"detail": "no"})
        with pytest.raises(OutcomeUnknown, match=f"odd answered with status {status}.*no"):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call())

    def test_a_declared_status_proves_that_nothing_happened(self, odd: OddProvider) -> None:
        declared = tool({"name": "odd", "url": f"{odd.url}/", "private": True, "not_applied_statuses": [422, 429]})
        odd.scripts["/x"] = answer(422, {"detail": "no such customer"})
        with pytest.raises(NotApplied, match="no such customer") as refused:
            declared.execute(arguments(method="POST", url=f"{odd.url}/x"), call())
        assert (refused.value.code, refused.value.permanent) == ("status_422", True)

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            ("7", 7.0),
            ("9" * 400, 86400.0),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 86400.0),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
            ("soon", None),
            ("\xb2", None),
            ("-1", None),
        ],
    )
    def test_the_wait_that_a_provider_asks_for_is_passed_on_within_a_day(
        self, odd: OddProvider, header: str, seconds: float | None
    ) -> None:
        declared = tool({"name": "odd", "url": f"{odd.url}/", "private": True, "not_applied_statuses": [429]})
        odd.scripts["/x"] = answer(429, {}, Retry_After=header)
        with pytest.raises(NotApplied) as refused:
            declared.execute(arguments(method="POST", url=f"{odd.url}/x"), call())
        assert (refused.value.retry_after, refused.value.permanent) == (seconds, False)

    @pytest.mark.parametrize(("said_at", "seconds"), [("Mon, 01 Jan 2024 12:00:00 GMT", 90.0), ("soon", 0.0)])
    def test_a_date_to_wait_for_is_held_against_the_providers_own_clock(
        self, odd: OddProvider, said_at: str, seconds: float
    ) -> None:
        declared = tool({"name": "odd", "url": f"{odd.url}/", "private": True, "not_applied_statuses": [429]})
        odd.scripts["/x"] = answer(429, {}, Retry_After="Mon, 01 Jan 2024 12:01:30 GMT", Date=said_at)
        with pytest.raises(NotApplied) as refused:
            declared.execute(arguments(method="POST", url=f"{odd.url}/x"), call())
        assert refused.value.retry_after == seconds

    def test_401_proves_it_by_the_words_of_http(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(401)
        with pytest.raises(NotApplied):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call())

    def test_a_failed_read_was_not_applied(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(500, {})
        with pytest.raises(NotApplied) as refused:
            to_odd.execute(arguments(method="GET", url=f"{odd.url}/x"), call())
        assert refused.value.code == "status_500"
        odd.scripts["/x"] = lambda request, connection: None
        with pytest.raises(NotApplied) as refused:
            to_odd.execute(arguments(method="GET", url=f"{odd.url}/x"), call())
        assert refused.value.code == "read_failed"


class TestFacts:
    def receipt(self, to_odd: HttpRequest, odd: OddProvider, body: Any, **more: Any) -> Receipt:
        odd.scripts["/x"] = answer(201, body)
        return to_odd.execute(arguments(method="POST", url=f"{odd.url}/x", **more), call())

    def test_an_answer_that_is_not_json_gives_the_status_only(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        assert self.receipt(to_odd, odd, b"<p>done</p>").facts == {"status": 201}
        assert self.receipt(to_odd, odd, b"").facts == {"status": 201}

    def test_what_cannot_be_kept_is_named_with_the_reason(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        body = b'{"big": "' + b"x" * 20_000 + b'", "nul": "\\u0000", "id": 12345678901234567890, "deep": {"a": [1]}}'
        keep = {"big": "/big", "nul": "/nul", "id": "/id", "gone": "/gone", "one": "/deep/a/0", "off": "/deep/a/01"}
        facts = self.receipt(to_odd, odd, body, keep=keep, operation_id="/id").facts
        assert facts["id"] == "12345678901234567890"
        assert facts["one"] == 1
        assert set(facts["not_kept"]) == {"big", "nul", "gone", "off"}
        assert facts["not_kept"]["gone"] == "missing"

    def test_all_facts_together_fit_into_evidence(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        keep = {f"f{number}": "/text" for number in range(32)}
        facts = self.receipt(to_odd, odd, {"text": "x" * 1000}, keep=keep).facts
        assert len(facts["not_kept"]) == 32 - (len(facts) - 2)
        assert len(str(facts)) < 16 * 1024

    @pytest.mark.parametrize(
        ("value", "expected"),
        [("INV-1", "INV-1"), (17, "17"), (None, None), (True, None), ({}, None), ("x" * 300, None)],
    )
    def test_an_operation_id_is_a_short_text(
        self, to_odd: HttpRequest, odd: OddProvider, value: Any, expected: str | None
    ) -> None:
        assert self.receipt(to_odd, odd, {"id": value}, operation_id="/id").operation_id == expected

    def test_a_fact_fills_a_url_quoted(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/read/a%2Fb%3F1"] = answer(200, b"all of it is here")
        verify = {"url": f"{odd.url}/read/{{facts.name}}", "expect": [{"pointer": "", "contains": "is here"}]}
        given, made = arguments(method="POST", url=f"{odd.url}/x", verify=verify), call()
        seen = to_odd.verify(given, committed(made, Receipt(facts={"name": "a/b?1"})))
        assert seen == Visible({"status": 200})

    @pytest.mark.parametrize("name", ["..", ".", "", None])
    def test_a_fact_cannot_change_the_path(self, to_odd: HttpRequest, odd: OddProvider, name: str | None) -> None:
        verify = {"url": f"{odd.url}/read/{{facts.name}}/x", "expect": [{"status": 200}]}
        given, made = arguments(method="POST", url=f"{odd.url}/x", verify=verify), call()
        assert isinstance(to_odd.verify(given, committed(made, Receipt(facts={"name": name}))), NotVisible)
        assert odd.received == []


class TestConditions:
    @pytest.mark.parametrize(
        ("condition", "body", "holds"),
        [
            ({"pointer": "/a", "equals": 1}, {"a": 1.0}, True),
            ({"pointer": "/a", "equals": 1}, {"a": True}, False),
            ({"pointer": "/a", "equals": None}, {"a": None}, True),
            ({"pointer": "/a", "equals": None}, {}, False),
            ({"pointer": "/a", "equals": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}, True),
            ({"pointer": "/a", "exists": True}, {"a": None}, True),
            ({"pointer": "/a/0", "exists": False}, {"a": []}, True),
            ({"pointer": "/a~1b", "exists": True}, {"a/b": 0}, True),
            ({"pointer": "/a", "contains": "ell"}, {"a": "hello"}, True),
            ({"pointer": "/a", "contains": 2}, {"a": [1, 2]}, True),
            ({"pointer": "/a", "contains": "1"}, {"a": [1]}, False),
            ({"pointer": "/a", "equals_sent": "/amount"}, {"a": 5}, True),
            ({"pointer": "/a", "equals_sent": "/nothing"}, {}, False),
            ({"status": 204}, {}, False),
        ],
    )
    def test_a_condition(
        self, to_odd: HttpRequest, odd: OddProvider, condition: dict[str, Any], body: Any, holds: bool
    ) -> None:
        odd.scripts["/read"] = answer(200, body)
        verify = {"url": f"{odd.url}/read", "expect": [condition]}
        given = arguments(method="POST", url=f"{odd.url}/x", json={"amount": 5}, verify=verify)
        assert isinstance(to_odd.verify(given, call()), Visible) == holds

    def test_a_status_other_than_2xx_counts_only_where_it_is_named(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/read"] = answer(404, {"list": []})
        empty = {"pointer": "/list", "equals": []}
        found = [{"pointer": "/list/0", "exists": True}]
        for absent, kind in (([empty], Inconclusive), ([empty, {"status": 404}], Absent)):
            lookup = {"url": f"{odd.url}/read", "found": found, "absent": absent}
            assert isinstance(to_odd.inspect(arguments(method="POST", url=f"{odd.url}/x", lookup=lookup), call()), kind)


class TestLimits:
    def test_an_answer_over_the_limit_leaves_the_outcome_unknown_and_says_so(
        self, to_odd: HttpRequest, odd: OddProvider
    ) -> None:
        odd.scripts["/x"] = answer(201, b"x" * (1024 * 1024 + 1))
        with pytest.raises(OutcomeUnknown, match="status 201 and more than 1048576 bytes"):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call())

    def test_a_slow_drip_cannot_stretch_the_total_deadline(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        def drip(_: Received, connection: socket.socket) -> None:
            connection.sendall(head(201, 10_000))
            while True:
                connection.sendall(b" ")
                time.sleep(0.02)

        odd.scripts["/x"] = drip
        started = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call(seconds=0.4))
        assert time.monotonic() - started < 5

    def test_arguments_may_shorten_the_deadline_and_not_lengthen_it(
        self, to_odd: HttpRequest, odd: OddProvider
    ) -> None:
        gone = []

        def wait_until_gone(_: Received, connection: socket.socket) -> None:
            gone.append(connection.recv(1))

        odd.scripts["/x"] = wait_until_gone
        for seconds, timeout in ((60.0, 0.2), (0.2, 60.0)):
            with pytest.raises(OutcomeUnknown):
                to_odd.execute(
                    arguments(method="POST", url=f"{odd.url}/x", timeout_seconds=timeout), call(seconds=seconds)
                )
        wait_for(lambda: gone == [b"", b""])


class TestRedirects:
    def test_a_read_follows_on_the_same_host(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts = {"/x": answer(302, Location="/y?z=1"), "/y": answer(200, {"a": 1})}
        receipt = to_odd.execute(arguments(method="GET", url=f"{odd.url}/x", keep={"a": "/a"}), call())
        assert receipt.facts == {"status": 200, "a": 1}

    @pytest.mark.parametrize(
        "location", ["http://example.org/", "//example.org/", "https://{host}/y", "/%2e%2e/y", "/a b"]
    )
    def test_a_read_follows_nowhere_else(self, to_odd: HttpRequest, odd: OddProvider, location: str) -> None:
        odd.scripts["/x"] = answer(302, Location=location.format(host=odd.host))
        with pytest.raises(NotApplied, match="same host"):
            to_odd.execute(arguments(method="GET", url=f"{odd.url}/x"), call())
        assert len(odd.received) == 1

    def test_a_read_does_not_follow_out_of_its_provider_s_part_of_a_host(self, odd: OddProvider) -> None:
        part = tool({"name": "part", "url": f"{odd.url}/part/", "private": True})
        odd.scripts["/part/x"] = answer(302, Location="/other")
        with pytest.raises(NotApplied):
            part.execute(arguments(method="GET", url=f"{odd.url}/part/x"), call())

    def test_redirects_in_a_circle_end(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(302, Location="/x")
        with pytest.raises(NotApplied, match="redirects"):
            to_odd.execute(arguments(method="GET", url=f"{odd.url}/x"), call())

    def test_an_effect_is_never_sent_on(self, to_odd: HttpRequest, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(307, Location="/y")
        with pytest.raises(OutcomeUnknown, match="307"):
            to_odd.execute(arguments(method="POST", url=f"{odd.url}/x"), call())
        assert len(odd.received) == 1


TOKEN = 'Bearer s3cr3t/tok"en+value'
BASIC = "Basic " + base64.b64encode(b"merchant:correct horse battery").decode()
ENVIRON = {
    "CHECKPOINT_SECRET_TOKEN": TOKEN,
    "CHECKPOINT_SECRET_BASIC": BASIC,
    "CHECKPOINT_SECRET_BAD": "two\nlines of secret",
}


class TestSecrets:
    def to(self, odd: OddProvider, **more: Any) -> HttpRequest:
        allowed = {"name": "odd", "url": f"{odd.url}/", "private": True, "secrets": ["TOKEN", "BASIC", "GONE", "BAD"]}
        return tool({**allowed, **more}, environ=ENVIRON)

    def given(self, odd: OddProvider, **more: Any) -> Any:
        headers = {"Authorization": "TOKEN", "X-Other": "BASIC"}
        return arguments(method="POST", url=f"{odd.url}/x", secret_headers=headers, **more)

    def echo(self, status: int) -> Any:
        def run(request: Received, connection: socket.socket) -> None:
            answer(status, {"id": f"id {request.headers['authorization']}", "headers": request.headers})(
                request, connection
            )

        return run

    def test_nor_in_the_spelling_of_a_writer_that_escapes_slashes(self, odd: OddProvider) -> None:
        def run(request: Received, connection: socket.socket) -> None:
            answer(500, json.dumps(request.headers["authorization"]).replace("/", "\\/").encode())(request, connection)

        odd.scripts["/x"] = run
        with pytest.raises(OutcomeUnknown, match=r"\[secret TOKEN\]"):
            self.to(odd).execute(self.given(odd), call())

    def no_secret_in(self, text: str) -> bool:
        hidden = ["s3cr3t", "correct horse", BASIC.split()[1]]
        return not any(part in text for part in hidden)

    def test_a_secret_goes_out_and_never_into_what_is_kept(self, odd: OddProvider) -> None:
        odd.scripts["/x"] = self.echo(201)
        keep = {"headers": "/headers", "auth": "/headers/authorization"}
        receipt = self.to(odd).execute(self.given(odd, keep=keep, operation_id="/id"), call())
        assert odd.received[0].headers["authorization"] == TOKEN
        assert self.no_secret_in(repr(receipt))
        assert receipt.facts["auth"] == "[secret TOKEN]"

    @pytest.mark.parametrize("declared", [[], [418]])
    def test_nor_into_an_error(self, odd: OddProvider, declared: list[int]) -> None:
        odd.scripts["/x"] = self.echo(418)
        with pytest.raises((OutcomeUnknown, NotApplied)) as raised:
            self.to(odd, not_applied_statuses=declared).execute(self.given(odd), call())
        assert self.no_secret_in(repr(raised.value))
        assert "[secret TOKEN]" in str(raised.value)
        assert raised.value.__suppress_context__

    def test_nor_into_a_lookup_or_a_verification(self, odd: OddProvider) -> None:
        odd.scripts["/read"] = self.echo(200)
        reading = {"url": f"{odd.url}/read", "secret_headers": {"Authorization": "TOKEN"}, "keep": {"h": "/headers"}}
        lookup = {**reading, "found": [{"status": 200}], "operation_id": "/id"}
        given = self.given(odd, lookup=lookup, verify={**reading, "expect": [{"status": 500}]})
        seen = [self.to(odd).inspect(given, call()), self.to(odd).verify(given, call())]
        assert [type(one) for one in seen] == [Found, NotVisible]
        assert self.no_secret_in(repr(seen))

    @pytest.mark.parametrize(("name", "reason"), [("GONE", "not set"), ("BAD", "line break"), ("FOREIGN", "may not")])
    def test_a_secret_that_cannot_be_used_stops_the_call_before_anything_is_sent(
        self, odd: OddProvider, name: str, reason: str
    ) -> None:
        given = arguments(method="POST", url=f"{odd.url}/x", secret_headers={"Authorization": name})
        with pytest.raises(NotApplied, match=reason) as refused:
            self.to(odd).execute(given, call())
        assert refused.value.permanent
        assert "lines of secret" not in str(refused.value)
        assert odd.connections == 0
