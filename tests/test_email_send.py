"""`email.send` against a real SMTP server and a real IMAP server: to all or to nobody, and never twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from email.header import decode_header, make_header
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import RecoveryClass
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import Absent, Found, Inconclusive, NotApplied, NotVisible, Receipt, Visible
from checkpoint.planning.argument_schemas import closed, match_variant, prepare_arguments
from tests.http_driver import call
from tests.mail_servers import (
    PASSWORD,
    MailServer,
    SentFolder,
    certificate,
    mail_server,
    password_checked,
    sent_folder,
)
from tests.notice_receivers import silent_server
from tests.odd_provider import OddProvider, answer
from workers.tools import http_providers
from workers.tools.email_accounts import Account, Accounts, load
from workers.tools.email_accounts import MailServer as Reached
from workers.tools.email_arguments import EmailArguments
from workers.tools.email_message import message_bytes
from workers.tools.email_send import EmailSend
from workers.tools.email_transaction import OutcomeUnknown
from workers.tools.operator_lists import ListInvalid
from workers.tools.secrets import Secrets

SCHEMA = closed(EmailArguments.model_json_schema())
SECRETS = Secrets({"CHECKPOINT_SECRET_MAIL_PASSWORD": PASSWORD})


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as running:
        yield running


@pytest.fixture(scope="module")
def folder() -> Iterator[SentFolder]:
    with sent_folder() as running:
        yield running


def arguments(**given: Any) -> EmailArguments:
    usual = {"account": "office", "to": ["dana@example.com"], "subject": "Invoice 7", "text": "It is due.\n"}
    return EmailArguments.model_validate_json(prepare_arguments(SCHEMA, {**usual, **given}), strict=True)


def tool(entry: dict[str, Any], secrets: Secrets = SECRETS) -> EmailSend:
    return EmailSend(Accounts([Account.model_validate(entry)]), secrets)


class TestTheMessage:
    def test_it_arrives_whole_under_its_key(self, server: MailServer) -> None:
        made = call()
        given = arguments(
            to=["dana@example.com"], cc=["eve@example.com"], bcc=["zoe@example.com"], reply_to="desk@example.com",
            subject="Grüße", text="Zeile\n.\nnach einem Punkt\n", html="<p>Zeile</p>",
            attachments=[{"name": "ü.pdf", "media_type": "application/pdf", "content": "AP8="}],
        )  # fmt: skip
        receipt = tool(server.entry(sender_name="Der Agent")).execute(given, made)
        mail = server.mail()
        assert server.taken[0][0] == ["dana@example.com", "eve@example.com", "zoe@example.com"]
        assert mail["Message-ID"] == f"<{made.key}@example.com>"
        assert (mail["From"], mail["Reply-To"]) == ("Der Agent <agent@example.com>", "desk@example.com")
        assert (mail["To"], mail["Cc"], mail["Bcc"]) == ("dana@example.com", "eve@example.com", None)
        assert (mail["Subject"], mail["Auto-Submitted"]) == ("Grüße", "auto-generated")
        plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
        assert plain
        assert html
        assert plain.get_content().splitlines() == ["Zeile", ".", "nach einem Punkt"]
        assert html.get_content().strip() == "<p>Zeile</p>"
        (attached,) = mail.iter_attachments()
        assert (attached.get_filename(), attached.get_content()) == ("ü.pdf", b"\x00\xff")
        assert receipt.operation_id == f"{made.key}@example.com"
        assert receipt.facts["queue_id"] == "4BFQ7x2z1"
        assert receipt.facts["reply"] == "250 2.0.0 Ok: queued as 4BFQ7x2z1"
        assert (receipt.facts["recipients"], receipt.facts["size"]) == (3, len(server.taken[0][1]))

    def test_the_same_call_makes_the_same_bytes_but_for_the_date(self) -> None:
        account = Account.model_validate(MailServer(25).entry())
        given = arguments(html="<p>x</p>", attachments=[{"name": "a", "content": "AA=="}])
        first, second = (
            [line for line in message_bytes(given, account, "k" * 64).split(b"\r\n") if not line.startswith(b"Date:")]
            for _ in range(2)
        )
        assert first == second

    @pytest.mark.parametrize(
        ("reply", "queue_id"),
        [
            ("250 2.0.0 Ok: queued as 4BFQ7x2z1", "4BFQ7x2z1"),
            ("250 OK id=1tXyZ2-0000Ab-3c", "1tXyZ2-0000Ab-3c"),
            ("250 2.0.0 5B1Dx9qk012345 Message accepted for delivery", "5B1Dx9qk012345"),
            ("250 Ok 0100018f-2a6b-000000", "0100018f-2a6b-000000"),
            ("250 thank you", None),
        ],
    )
    def test_the_servers_own_name_for_it_is_kept(self, server: MailServer, reply: str, queue_id: str | None) -> None:
        server.answers["."] = reply
        facts = tool(server.entry()).execute(arguments(), call()).facts
        assert (facts["reply"], facts.get("queue_id")) == (reply, queue_id)


class TestRefusedArguments:
    @pytest.mark.parametrize(
        "given",
        [
            {"subject": "Hello\r\nBcc: eve@example.com"},
            {"subject": "Hello\nBcc: eve@example.com"},
            {"subject": "Hello\u2028x"},
            {"subject": "=?utf-8?q?=0ABcc:_eve@example.com?="},
            {"subject": " x"},
            {"to": ["dana@example.com\r\nBcc: eve@example.com"]},
            {"to": ["dana@example.com\n"]},
            {"to": ["Dana <dana@example.com>"]},
            {"to": ["dana@example.com, eve@example.com"]},
            {"to": ["dana@example.com> SIZE=1"]},
            {"to": ["a..b@example.com"]},
            {"to": ["dana"]},
            {"to": []},
            {"cc": ["x@example.com"] * 101},
            {"reply_to": "x@example.com\r\nX: y"},
            {"attachments": [{"name": "a\r\nX: y", "content": "AA=="}]},
            {"attachments": [{"name": "../a", "content": "AA=="}]},
            {"attachments": [{"name": "a", "media_type": "text/html\r\nX: y", "content": "AA=="}]},
            {"attachments": [{"name": "a", "media_type": "message/rfc822", "content": "AA=="}]},
            {"headers": {"X": "y"}},
            {"text": ""},
        ],
    )
    def test_what_could_become_another_header_or_recipient_is_refused_in_words(self, given: dict[str, Any]) -> None:
        with pytest.raises(ArgumentsInvalid) as refused:
            arguments(**given)
        assert "^" not in str(refused.value)

    @for_all(subject=st.text(max_size=60), text=st.text(min_size=1, max_size=300), name=st.text(max_size=30))
    @hypothesis_settings(max_examples=40, deadline=None)
    def test_whatever_is_taken_makes_these_headers_and_this_subject(self, subject: str, text: str, name: str) -> None:
        account = Account.model_validate(MailServer(25).entry())
        try:
            given = arguments(subject=subject, text=text, attachments=[{"name": name, "content": "AA=="}])
            content = message_bytes(given, account, "k" * 64)
        except (ArgumentsInvalid, NotApplied):
            return
        head = content.partition(b"\r\n\r\n")[0].replace(b"\r\n ", b" ").replace(b"\r\n\t", b" ").split(b"\r\n")
        names = [line.partition(b":")[0].decode() for line in head]
        expected = ["Message-ID", "Date", "From", "To", "Subject", "Auto-Submitted", "MIME-Version", "Content-Type"]
        assert names == expected
        written = head[names.index("Subject")].decode().removeprefix("Subject: ")
        assert str(make_header(decode_header(written))).split() == subject.split()
        assert b"\r\n.\r\n" not in b"\r\n" + content.replace(b"\r\n..", b"\r\n")

    def test_limits_of_the_account(self, server: MailServer) -> None:
        limited = tool(server.entry(most_recipients=2, largest_message=2048))
        with pytest.raises(NotApplied, match="3 recipients; account office allows 2") as refused:
            limited.execute(arguments(cc=["b@example.com", "c@example.com"]), call())
        assert refused.value.permanent
        limited.execute(arguments(cc=["dana@example.com", "b@example.com"]), call())
        with pytest.raises(NotApplied, match="account office allows 2048") as refused:
            limited.execute(arguments(text="x" * 3000), call())
        assert refused.value.permanent
        with pytest.raises(NotApplied, match="not base64"):
            limited.execute(arguments(attachments=[{"name": "a", "content": "A"}]), call())
        assert len(server.taken) == 1

    def test_an_account_that_is_on_no_list(self, server: MailServer) -> None:
        with pytest.raises(NotApplied, match="no account other") as refused:
            tool(server.entry()).execute(arguments(account="other"), call())
        assert (refused.value.code, refused.value.permanent) == ("not_allowed", True)


class TestProofThatNothingWasSent:
    def test_nobody_listens(self, server: MailServer) -> None:
        entry = server.entry()
        with silent_server() as silent:
            entry["port"] = silent.port
        with pytest.raises(NotApplied, match="ConnectionRefusedError") as refused:
            tool(entry).execute(arguments(), call())
        assert (refused.value.code, refused.value.permanent) == ("never_sent", False)

    @pytest.mark.parametrize("drip", [b"", b"220-"])
    def test_a_server_that_never_comes_to_the_point_is_left_at_the_deadline(self, drip: bytes) -> None:
        with silent_server(drip) as silent, pytest.raises(NotApplied) as refused:
            tool(MailServer(silent.port).entry()).execute(arguments(), call(seconds=0.3))
        assert refused.value.code == "never_sent"

    @pytest.mark.parametrize(
        ("at", "reply", "code", "permanent"),
        [
            ("MAIL", "451 later", "reply_451", False),
            ("MAIL", "550 not you", "reply_550", True),
            ("DATA", "451 later", "reply_451", False),
            ("DATA", "554 no", "reply_554", True),
            (".", "452 full", "reply_452", False),
            (".", "554 spam", "reply_554", True),
        ],
    )
    def test_a_refusal(self, server: MailServer, at: str, reply: str, code: str, permanent: bool) -> None:
        server.answers[at], server.taken_first = reply, False
        with pytest.raises(NotApplied, match=reply) as refused:
            tool(server.entry()).execute(arguments(), call())
        assert (refused.value.code, refused.value.permanent) == (code, permanent)
        assert server.taken == []

    @pytest.mark.parametrize("at", ["MAIL", "dana@example.com", "DATA"])
    def test_a_connection_that_is_lost_before_the_message_has_ended(self, server: MailServer, at: str) -> None:
        server.answers[at] = None
        with pytest.raises(NotApplied) as refused:
            tool(server.entry()).execute(arguments(), call())
        assert refused.value.code == "never_sent"
        assert server.taken == []

    @pytest.mark.parametrize(("reply", "permanent"), [("550 no such user", True), ("450 later", False)])
    def test_one_refused_recipient_and_nobody_gets_it(self, server: MailServer, reply: str, permanent: bool) -> None:
        server.answers["eve@example.com"] = reply
        with pytest.raises(NotApplied, match=f"1 of 3 recipients.*eve@example.com: {reply}") as refused:
            tool(server.entry()).execute(arguments(cc=["eve@example.com", "zoe@example.com"]), call())
        assert (refused.value.code, refused.value.permanent) == ("recipients_refused", permanent)
        assert server.taken == []

    def test_a_deadline_that_passed(self, server: MailServer) -> None:
        with pytest.raises(NotApplied):
            tool(server.entry()).execute(arguments(), call(seconds=-1))
        assert server.taken == []


class TestUnknown:
    @pytest.mark.parametrize("reply", [None, "421 closing"])
    def test_a_message_that_ended_and_no_word_about_it(self, server: MailServer, reply: str | None) -> None:
        server.answers["."] = reply
        with pytest.raises(OutcomeUnknown):
            tool(server.entry()).execute(arguments(), call())
        assert len(server.taken) == 1

    def test_without_a_lookup_nothing_is_promised(self, server: MailServer) -> None:
        (variant, unlisted) = tool(server.entry()).variants()
        assert variant.contract.recovery is unlisted.contract.recovery is RecoveryClass.OPAQUE
        assert not variant.contract.can_verify
        assert "Message-ID" in variant.contract.where_to_look


class TestTheSentFolder:
    def test_a_message_whose_reply_was_lost_is_found_there(self, server: MailServer, folder: SentFolder) -> None:
        server.answers["."], server.kept_in = None, folder
        sending, given, made = tool(server.entry(sent_folder=folder.entry())), arguments(cc=["eve@example.com"]), call()
        assert isinstance(sending.inspect(given, made), Absent)
        with pytest.raises(OutcomeUnknown):
            sending.execute(given, made)
        facts = {"message_id": f"{made.key}@example.com", "folder": "Sent", "copies": 1}
        assert sending.inspect(given, made) == Found(Receipt(f"{made.key}@example.com", facts))
        assert sending.verify(given, made) == Visible(facts)

    def test_another_message_under_the_key_is_a_conflict(self, server: MailServer, folder: SentFolder) -> None:
        server.kept_in = folder
        sending, made = tool(server.entry(sent_folder=folder.entry())), call()
        sending.execute(arguments(), made)
        for other in (arguments(subject="Invoice 8"), arguments(to=["eve@example.com"])):
            found = sending.inspect(other, made)
            assert isinstance(found, Found)
            assert not found.receipt.arguments_match
            assert isinstance(sending.verify(other, made), NotVisible)

    def test_a_folder_that_cannot_be_asked_says_nothing(self, server: MailServer, folder: SentFolder) -> None:
        made = call()
        for entry in (folder.entry(folder="Nowhere"), folder.entry(port=server.port), folder.entry(username="nobody")):
            asking = tool(server.entry(sent_folder=entry))
            assert isinstance(asking.inspect(arguments(), made), Inconclusive)
            assert isinstance(asking.verify(arguments(), made), NotVisible)

    def test_a_message_that_the_server_did_not_keep_is_not_visible(
        self, server: MailServer, folder: SentFolder
    ) -> None:
        sending, made = tool(server.entry(sent_folder=folder.entry())), call()
        sending.execute(arguments(), made)
        assert isinstance(sending.verify(arguments(), made), NotVisible)

    def test_the_contract_says_that_it_can_be_asked(self, server: MailServer, folder: SentFolder) -> None:
        sending = tool(server.entry(sent_folder=folder.entry()))
        variants = {one.name: one for one in sending.variants()}
        stored = arguments().model_dump()
        picked = match_variant([{"name": one.name, "when": one.when} for one in variants.values()], stored)
        assert picked == "office: queryable, lookup"
        contract = variants[picked].contract
        assert (contract.recovery, contract.can_inspect, contract.can_verify) == (RecoveryClass.QUERYABLE, True, True)


class TestALookupOverHttp:
    @pytest.fixture
    def sending(
        self, server: MailServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[tuple[EmailSend, OddProvider]]:
        with OddProvider() as odd:
            providers = tmp_path / "providers.toml"
            providers.write_text(f'[[provider]]\nname = "log"\nurl = "{odd.url}/"\nprivate = true\n')
            monkeypatch.setenv("CHECKPOINT_HTTP_PROVIDERS", str(providers))
            http_providers.load.cache_clear()
            lookup = {
                "url": f"{odd.url}/messages?id={{key}}",
                "found": [{"pointer": "/count", "equals": 1}],
                "absent": [{"pointer": "/count", "equals": 0}],
                "compare": {"/subject": "/subject", "/message_id": "/id"},
            }
            yield tool(server.entry(lookup=lookup)), odd
        http_providers.load.cache_clear()

    def test_it_tells(self, sending: tuple[EmailSend, OddProvider]) -> None:
        asking, odd = sending
        given, made = arguments(), call()
        odd.scripts["/messages"] = answer(200, {"count": 0})
        assert isinstance(asking.inspect(given, made), Absent)
        there = {"count": 1, "subject": given.subject, "id": f"{made.key}@example.com"}
        odd.scripts["/messages"] = answer(200, there)
        assert isinstance(asking.verify(given, made), Visible)
        odd.scripts["/messages"] = answer(200, {**there, "subject": "other"})
        found = asking.inspect(given, made)
        assert isinstance(found, Found)
        assert not found.receipt.arguments_match
        odd.scripts["/messages"] = answer(500, {})
        assert isinstance(asking.inspect(given, made), Inconclusive)
        assert odd.received[0].target == f"/messages?id={made.key}"


@pytest.mark.parametrize(
    ("point", "taken"), [("email.send/handed_over", 0), ("email.send/answered", 1)], ids=["before", "after"]
)
def test_killed_around_the_end_of_the_message_the_folder_tells(
    server: MailServer, folder: SentFolder, tmp_path: Path, point: str, taken: int
) -> None:
    """All of the message had gone out at the first point, only not its end: the server drops it."""
    server.kept_in = folder
    entry, made = server.entry(sent_folder=folder.entry()), call(seconds=60)
    crashed_execute(tmp_path, entry, point, made.key)
    found = tool(entry).inspect(arguments(), call(key=made.key))
    assert len(server.taken) == taken
    assert isinstance(found, Found if taken else Absent)


def crashed_execute(folder: Path, entry: dict[str, Any], point: str, key: str) -> None:
    """Another process sends the usual message, and is killed at the point."""
    plan = folder / "plan"
    plan.write_text(f"{point} * KILL")
    script = (
        "import json, sys, django; django.setup(); from tests.test_email_send import arguments, call, tool; "
        "tool(json.loads(sys.argv[1])).execute(arguments(), call(key=sys.argv[2]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, json.dumps(entry), key],
        cwd=BASE_DIR,
        env={**os.environ, "CHECKPOINT_CRASH_PLAN": str(plan)},
        check=False,
    )
    assert run.returncode == -signal.SIGKILL


class TestLogin:
    # aiosmtpd counts STARTTLS only, and warns where TLS was there from the start.
    pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

    @pytest.fixture(params=["tls", "starttls"])
    def secured(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[MailServer, dict[str, Any]]]:
        made = certificate(tmp_path)
        options = password_checked(b"agent", PASSWORD.encode())
        implicit = made.context if request.param == "tls" else None
        if implicit is None:
            options["tls_context"] = made.context
        else:
            options["auth_require_tls"] = False
        login = {"security": request.param, "username": "agent", "secret": "MAIL_PASSWORD"}
        with mail_server(implicit_tls=implicit, **options) as running:
            yield running, running.entry(**login, ca_file=str(made.file))

    def test_over_tls(self, secured: tuple[MailServer, dict[str, Any]]) -> None:
        server, entry = secured
        tool(entry).execute(arguments(), call())
        assert len(server.taken) == 1

    def test_a_certificate_that_nobody_vouches_for(self, secured: tuple[MailServer, dict[str, Any]]) -> None:
        server, entry = secured
        with pytest.raises(NotApplied, match="certificate verify failed"):
            tool({**entry, "ca_file": ""}).execute(arguments(), call())
        assert server.taken == []

    def test_a_wrong_password_is_a_refusal_that_does_not_show_it(
        self, secured: tuple[MailServer, dict[str, Any]]
    ) -> None:
        server, entry = secured
        wrong = "wrong-password"
        with pytest.raises(NotApplied, match="535") as refused:
            tool(entry, Secrets({"CHECKPOINT_SECRET_MAIL_PASSWORD": wrong})).execute(arguments(), call())
        assert wrong not in str(refused.value)
        with pytest.raises(NotApplied, match="CHECKPOINT_SECRET_MAIL_PASSWORD is not set"):
            tool(entry, Secrets({})).execute(arguments(), call())
        assert server.taken == []

    def test_no_starttls_no_message(self, server: MailServer) -> None:
        with pytest.raises(NotApplied, match="STARTTLS"):
            tool(server.entry(security="starttls")).execute(arguments(), call())
        assert server.taken == []

    def test_a_secret_that_a_server_repeats_is_kept_nowhere(self, server: MailServer) -> None:
        server.answers["."] = f"250 Ok: queued as {PASSWORD}"
        assert PASSWORD not in json.dumps(tool(server.entry()).execute(arguments(), call()).facts)
        server.answers["."] = f"554 you said {PASSWORD}"
        with pytest.raises(NotApplied, match="secret MAIL_PASSWORD"):
            tool(server.entry()).execute(arguments(), call())


class TestTheList:
    def test_the_shipped_one_has_the_sandbox_and_can_be_read(self) -> None:
        assert [one.name for one in load().variants()] == ["sandbox: queryable, lookup", "unlisted"]

    def test_its_example_is_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shipped = (BASE_DIR / "deploy" / "mail-accounts.toml").read_text()
        lines = shipped[shipped.index("# [[account]]") :].splitlines()
        (tmp_path / "accounts.toml").write_text("\n".join(line.removeprefix("#").strip() for line in lines))
        monkeypatch.setenv("CHECKPOINT_MAIL_ACCOUNTS", str(tmp_path / "accounts.toml"))
        assert [one.name for one in load.__wrapped__().variants()] == ["office: queryable, lookup", "unlisted"]

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ('secret = "X"', "go together"),
            ('username = "x"\nsecret = "X"\nsecurity = "none"', "over TLS only"),
            ('password = "x"', "password"),
            ("port = 0", "port"),
        ],
    )
    def test_a_wrong_entry_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, words: str
    ) -> None:
        given = f'[[account]]\nname = "a"\nhost = "mail.example"\nsender = "a@b.example"\n{more}\n'
        if "port" not in more:
            given += "port = 25\n"
        (tmp_path / "accounts.toml").write_text(given)
        monkeypatch.setenv("CHECKPOINT_MAIL_ACCOUNTS", str(tmp_path / "accounts.toml"))
        with pytest.raises(ListInvalid, match=rf"number 1.*{words}"):
            load.__wrapped__()


def test_the_system_s_certificates_are_what_counts_unless_others_are_named() -> None:
    assert Reached(host="mail.example", port=465).tls().get_ca_certs()
