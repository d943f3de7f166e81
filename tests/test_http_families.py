"""Bodies as forms, and changes tied to an ETag: against the real sandbox, and as the list promises them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from checkpoint.contracts import RecoveryClass
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import Absent, Found, Inconclusive, NotApplied, Visible
from tests.http_driver import arguments, call, committed, tool, tool_from, variant_for
from tests.odd_provider import OddProvider, answer
from tests.sandbox_driver import SandboxProcess
from workers.tools.http_request import HttpRequest, OutcomeUnknown


@pytest.fixture
def to_sandbox(sandbox: SandboxProcess, tmp_path: Path) -> HttpRequest:
    return tool_from(sandbox.providers_toml(), tmp_path)


def document(sandbox: SandboxProcess, name: str, price: int, **more: Any) -> dict[str, Any]:
    """A change to a document, with its lookup."""
    url = f"{sandbox.url}/documents/{name}"
    absent = [{"header": "ETag", "equals": more["if_match"]}] if "if_match" in more else [{"status": 404}]
    lookup = {"url": url, "found": [{"pointer": "/price", "equals_sent": "/price"}], "absent": absent}
    verify = {"url": url, "expect": [{"pointer": "/price", "equals_sent": "/price"}]}
    return {"method": "PUT", "url": url, "json": {"price": price}, "lookup": lookup, "verify": verify, **more}


class TestETags:
    @pytest.fixture
    def read(self, sandbox: SandboxProcess, to_sandbox: HttpRequest) -> tuple[str, str]:
        """A document that is there, and the ETag that a read of it keeps."""
        name = call().key
        to_sandbox.execute(arguments(**document(sandbox, name, 1, if_none_match="*")), call())
        receipt = to_sandbox.execute(arguments(method="GET", url=f"{sandbox.url}/documents/{name}"), call())
        return name, receipt.facts["etag"]

    def test_a_change_takes_effect_on_the_state_that_was_read_and_on_no_other(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest, read: tuple[str, str]
    ) -> None:
        name, etag = read
        given, made = arguments(**document(sandbox, name, 2, if_match=etag)), call()
        receipt = to_sandbox.execute(given, made)
        assert receipt.facts["etag"] != etag
        assert isinstance(to_sandbox.verify(given, committed(made, receipt)), Visible)
        with pytest.raises(NotApplied, match="412") as refused:
            to_sandbox.execute(arguments(**document(sandbox, name, 3, if_match=etag)), call())
        assert (refused.value.code, refused.value.permanent) == ("status_412", True)
        assert sandbox.count("document", reference=name) == 2

    def test_sent_again_after_a_lost_answer_it_changes_nothing_more_and_the_lookup_finds_it(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest, read: tuple[str, str]
    ) -> None:
        name, etag = read
        given, made = arguments(**document(sandbox, name, 2, if_match=etag)), call()
        assert isinstance(to_sandbox.inspect(given, made), Absent)
        sandbox.fault("drop_after_work", "/documents", method="PUT")
        with pytest.raises(OutcomeUnknown):
            to_sandbox.execute(given, made)
        assert isinstance(to_sandbox.inspect(given, made), Found)
        with pytest.raises(NotApplied):
            to_sandbox.execute(given, made)
        assert sandbox.count("document", reference=name) == 2

    def test_somebody_else_s_change_is_neither_found_nor_absent(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest, read: tuple[str, str]
    ) -> None:
        name, etag = read
        to_sandbox.execute(arguments(**document(sandbox, name, 7, if_match=etag)), call())
        looked_up = to_sandbox.inspect(arguments(**document(sandbox, name, 2, if_match=etag)), call())
        assert isinstance(looked_up, Inconclusive)

    def test_one_that_is_there_is_not_made_a_second_time(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest, read: tuple[str, str]
    ) -> None:
        with pytest.raises(NotApplied, match="412"):
            to_sandbox.execute(arguments(**document(sandbox, read[0], 1, if_none_match="*")), call())
        assert sandbox.count("document", reference=read[0]) == 1

    @pytest.mark.parametrize(
        "given", [{"if_match": 'W/"1"'}, {"if_match": "*"}, {"if_match": "1"}, {"if_none_match": "1"}]
    )
    def test_a_condition_that_promises_nothing_is_refused(self, given: dict[str, Any]) -> None:
        with pytest.raises(ArgumentsInvalid):
            arguments(method="PUT", url="http://a.example/x", **given)

    def test_412_proves_something_only_where_the_list_says_so_and_a_condition_was_sent(self, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(412, {})
        given = {"method": "PUT", "url": f"{odd.url}/x"}
        entry = {"name": "odd", "url": f"{odd.url}/", "private": True}
        with pytest.raises(OutcomeUnknown):
            tool(entry).execute(arguments(**given, if_match='"1"'), call())
        with pytest.raises(OutcomeUnknown):
            tool({**entry, "conditional": True}).execute(arguments(**given), call())
        with pytest.raises(NotApplied):
            tool({**entry, "conditional": True}).execute(arguments(**given, if_match='"1"'), call())
        assert [one.headers.get("if-match") for one in odd.received] == ['"1"', None, '"1"']

    def test_an_etag_is_kept_from_conditional_providers_only(self, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(200, {}, ETag='"7"')
        entry = {"name": "odd", "url": f"{odd.url}/", "private": True}
        given = arguments(method="GET", url=f"{odd.url}/x")
        assert "etag" not in tool(entry).execute(given, call()).facts
        assert tool({**entry, "conditional": True}).execute(given, call()).facts["etag"] == '"7"'


@pytest.fixture
def odd() -> Any:
    with OddProvider() as provider:
        yield provider


BOTH = {"conditional": True, "queryable": True}
LOOKUP = {"url": "http://a.example/x", "found": [{"status": 200}]}


@pytest.mark.parametrize(
    ("entry", "more", "recovery", "inspects"),
    [
        ({"honours_key": True}, {}, RecoveryClass.IDEMPOTENT, False),
        ({"honours_key": True, "queryable": True}, {"lookup": LOOKUP}, RecoveryClass.IDEMPOTENT, True),
        ({"queryable": True}, {"lookup": LOOKUP}, RecoveryClass.QUERYABLE, True),
        ({"conditional": True}, {"if_match": '"1"', "lookup": LOOKUP}, RecoveryClass.IDEMPOTENT, True),
        ({"conditional": True}, {"if_match": '"1"'}, RecoveryClass.OPAQUE, False),
        ({"conditional": True}, {"lookup": LOOKUP}, RecoveryClass.OPAQUE, False),
        ({"conditional": True}, {"if_none_match": "*", "lookup": LOOKUP}, RecoveryClass.OPAQUE, False),
        (BOTH, {"if_none_match": "*", "lookup": LOOKUP}, RecoveryClass.QUERYABLE, True),
        (BOTH, {"if_match": '"1"', "lookup": LOOKUP}, RecoveryClass.IDEMPOTENT, True),
        ({}, {"if_match": '"1"', "lookup": LOOKUP}, RecoveryClass.OPAQUE, False),
    ],
)  # fmt: skip
def test_each_family_promises_what_its_entry_and_its_arguments_make_possible(
    entry: dict[str, Any], more: dict[str, Any], recovery: RecoveryClass, inspects: bool
) -> None:
    made = tool({"name": "a", "url": "http://a.example/", **entry})
    contract = variant_for(made, {"method": "PUT", "url": "http://a.example/x", "json": {}, **more}).contract
    assert (contract.recovery, contract.can_inspect) == (recovery, inspects)


class TestForms:
    def test_a_form_is_sent_sorted_with_the_key_and_numbers_as_json_has_them(self, odd: OddProvider) -> None:
        odd.scripts["/x"] = answer(200, {})
        form = {"b": ["x y", "ü&="], "a[ref]": "{key}", "n": 1200, "t": True, "d": 0.5}
        made = call()
        sender = tool({"name": "odd", "url": f"{odd.url}/", "private": True})
        sender.execute(arguments(method="POST", url=f"{odd.url}/x", form=form), made)
        (request,) = odd.received
        assert request.headers["content-type"] == "application/x-www-form-urlencoded"
        assert parse_qsl(request.body.decode()) == [
            ("a[ref]", made.key), ("b", "x y"), ("b", "ü&="), ("d", "0.5"), ("n", "1200"), ("t", "true"),
        ]  # fmt: skip

    def test_what_was_sent_as_a_form_is_looked_up_and_compared(
        self, sandbox: SandboxProcess, to_sandbox: HttpRequest
    ) -> None:
        given = arguments(
            method="POST",
            url=f"{sandbox.url}/tickets",
            form={"reference": "{key}", "order": "7731"},
            lookup={
                "url": f"{sandbox.url}/tickets?reference={{key}}",
                "found": [{"pointer": "/count", "equals": 1}],
                "compare": {"/order": "/tickets/0/order"},
            },
        )
        made = call()
        sandbox.fault("drop_after_work", "/tickets")
        with pytest.raises(OutcomeUnknown):
            to_sandbox.execute(given, made)
        found = to_sandbox.inspect(given, made)
        assert isinstance(found, Found)
        assert found.receipt.arguments_match
        other = given.model_copy(update={"form": {"reference": "{key}", "order": "7732"}})
        found = to_sandbox.inspect(other, made)
        assert isinstance(found, Found)
        assert not found.receipt.arguments_match

    @pytest.mark.parametrize("given", [{"form": {"a": "b"}, "json": {}}, {"form": {}}, {"form": {"a": {"b": 1}}}])
    def test_two_bodies_and_what_no_form_can_say_are_refused(self, given: dict[str, Any]) -> None:
        with pytest.raises(ArgumentsInvalid):
            arguments(method="POST", url="http://a.example/x", **given)
