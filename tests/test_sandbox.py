"""The sandbox provider: what it honours, and that each of its faults does what its name says."""

from __future__ import annotations

import os
import smtplib
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from operator import attrgetter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox_driver import SandboxProcess, wait_for

REPLAYED = "Idempotent-Replayed"


@pytest.fixture
def http(sandbox: SandboxProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox.url, timeout=15, trust_env=False) as client:
        yield client


@pytest.fixture
def key() -> str:
    return uuid.uuid4().hex


def post(http: httpx.Client, path: str, key: str, **body: Any) -> httpx.Response:
    return http.post(path, json=body, headers={"Idempotency-Key": key})


class TestBilling:
    def test_the_same_key_gets_the_original_answer_marked_as_a_replay(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        first = post(http, "/billing/invoices", key, amount=5, customer="acme")
        second = post(http, "/billing/invoices", key, customer="acme", amount=5)
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json() == second.json()
        assert (REPLAYED in first.headers, second.headers[REPLAYED]) == (False, "true")
        assert sandbox.count("invoice", key=key) == 1

    def test_another_body_under_a_used_key_is_refused(self, http: httpx.Client, key: str) -> None:
        post(http, "/billing/invoices", key, amount=5)
        assert post(http, "/billing/invoices", key, amount=6).status_code == 422

    def test_a_key_in_progress_gets_409(self, http: httpx.Client, sandbox: SandboxProcess, key: str) -> None:
        sandbox.fault("hold", "/billing/invoices")
        first = in_background(http, key)
        sandbox.wait_held()
        assert post(http, "/billing/invoices", key, amount=5).status_code == 409
        sandbox.release()
        first.join()
        assert post(http, "/billing/invoices", key, amount=5).status_code == 201
        assert sandbox.count("invoice", key=key) == 1

    def test_an_invoice_is_found_by_key_and_by_number(self, http: httpx.Client, key: str) -> None:
        number = post(http, "/billing/invoices", key, amount=5).json()["number"]
        assert http.get("/billing/invoices", params={"key": key}).json()["invoices"][0]["number"] == number
        assert http.get(f"/billing/invoices/{number}").json()["amount"] == 5

    def test_a_forgotten_key_makes_a_second_invoice(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        post(http, "/billing/invoices", key, amount=5)
        sandbox.forget_keys()
        post(http, "/billing/invoices", key, amount=5)
        assert sandbox.duplicates()["invoice"] == {key: 2}


class TestTheOthers:
    def test_a_second_ticket_is_made_and_both_are_found_by_reference(self, http: httpx.Client, key: str) -> None:
        for _ in range(2):
            post(http, "/tickets", key, reference=key)
        assert http.get("/tickets", params={"reference": key}).json()["count"] == 2

    @pytest.mark.parametrize(("path", "kind"), [("/charges", "charge"), ("/refunds", "refund")])
    def test_charges_and_refunds_neither_deduplicate_nor_can_be_asked(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str, path: str, kind: str
    ) -> None:
        for _ in range(2):
            number = post(http, path, key, reference=key).json()["number"]
        assert sandbox.count(kind, key=key) == 2
        assert http.get(path, params={"reference": key}).status_code == 404
        assert http.get(f"{path}/{number}").status_code == 404

    def test_a_page_reads_as_it_was_last_put(self, http: httpx.Client, key: str) -> None:
        for text in ("old", "new"):
            http.put(f"/site/{key}", json={"text": text})
        assert http.get(f"/site/{key}").json()["text"] == "new"

    def test_a_page_is_found_by_the_key_that_it_came_with(self, http: httpx.Client, key: str) -> None:
        assert http.get("/site", params={"key": key}).json()["count"] == 0
        http.put("/site/about", json={}, headers={"Idempotency-Key": key})
        assert http.get("/site", params={"key": key}).json()["count"] == 1
        assert post(http, "/site", key).status_code == 405

    @pytest.mark.parametrize("content", [b"", b"not json", b"[1]", b"\xff"])
    def test_a_body_that_is_no_object_is_refused(self, http: httpx.Client, content: bytes) -> None:
        assert http.post("/charges", content=content).status_code == 400


class TestFaults:
    def test_drop_after_work_loses_the_answer_and_keeps_the_effect(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        sandbox.fault("drop_after_work", "/charges")
        with pytest.raises(httpx.RemoteProtocolError):
            post(http, "/charges", key)
        assert sandbox.count("charge", key=key) == 1

    def test_drop_before_work_loses_both(self, http: httpx.Client, sandbox: SandboxProcess, key: str) -> None:
        sandbox.fault("drop_before_work", "/charges")
        with pytest.raises(httpx.RemoteProtocolError):
            post(http, "/charges", key)
        assert sandbox.count("charge", key=key) == 0

    def test_refuse_answers_with_the_status_and_does_nothing(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        sandbox.fault("refuse", "/charges", status=429)
        assert post(http, "/charges", key).status_code == 429
        assert sandbox.count("charge", key=key) == 0

    def test_a_hidden_effect_is_answered_and_shows_when_cleared(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        sandbox.fault("hide_effect", "/billing/invoices")
        number = post(http, "/billing/invoices", key).json()["number"]
        assert http.get(f"/billing/invoices/{number}").status_code == 404
        assert http.get("/billing/invoices", params={"key": key}).json()["count"] == 0
        sandbox.clear()
        assert http.get(f"/billing/invoices/{number}").status_code == 200

    def test_a_lagging_lookup_catches_up_while_reads_by_number_see_it_at_once(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        sandbox.fault("lookup_lag", "/tickets", seconds=0.3)
        number = post(http, "/tickets", key, reference=key).json()["number"]
        assert http.get("/tickets", params={"reference": key}).json()["count"] == 0
        assert http.get(f"/tickets/{number}").status_code == 200
        wait_for(lambda: http.get("/tickets", params={"reference": key}).json()["count"] == 1)

    def test_late_work_lands_after_its_caller_gave_up(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        sandbox.fault("work_late", "/tickets", seconds=0.3)
        with pytest.raises(httpx.ReadTimeout):
            http.post("/tickets", json={"reference": key}, timeout=0.05)
        assert sandbox.count("ticket", reference=key) == 0
        wait_for(lambda: sandbox.count("ticket", reference=key) == 1)

    def test_a_late_answer_comes_after_the_effect(self, http: httpx.Client, sandbox: SandboxProcess, key: str) -> None:
        sandbox.fault("answer_late", "/charges", seconds=30)
        with pytest.raises(httpx.ReadTimeout):
            http.post("/charges", json={}, headers={"Idempotency-Key": key}, timeout=0.2)
        assert sandbox.count("charge", key=key) == 1

    def test_a_cached_failure_is_replayed_for_its_key(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        sandbox.fault("cached_failure", "/billing/invoices", status=500)
        assert post(http, "/billing/invoices", key).status_code == 500
        replay = post(http, "/billing/invoices", key)
        assert (replay.status_code, replay.headers[REPLAYED]) == (500, "true")
        assert sandbox.count("invoice", key=key) == 0

    def test_a_held_request_waits_with_its_effect_in_the_ledger_and_ends_when_its_caller_is_gone(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        sandbox.fault("hold", "/billing/invoices")
        with httpx.Client(base_url=sandbox.url, trust_env=False) as caller, pytest.raises(httpx.ReadTimeout):
            caller.post("/billing/invoices", json={}, headers={"Idempotency-Key": key}, timeout=0.2)
        assert sandbox.count("invoice", key=key) == 1
        wait_for(lambda: not sandbox.held())

    def test_faults_strike_as_often_as_asked(self, http: httpx.Client, sandbox: SandboxProcess, key: str) -> None:
        sandbox.fault("refuse", "/charges", times=2)
        assert [post(http, "/charges", key).status_code for _ in range(3)] == [503, 503, 201]

    def test_magic_in_a_body_strikes_the_first_send_of_a_key_only(
        self, http: httpx.Client, sandbox: SandboxProcess, key: str
    ) -> None:
        with pytest.raises(httpx.RemoteProtocolError):
            post(http, "/charges", key, metadata={"sandbox": "drop_after_work"})
        assert post(http, "/charges", key, metadata={"sandbox": "drop_after_work"}).status_code == 201
        assert sandbox.count("charge", key=key) == 2

    @pytest.mark.parametrize("wanted", [{"fault": "explode"}, {"fault": "hold", "colour": 1}, {}, {"clear": 1}])
    def test_an_unknown_fault_is_refused_with_a_reason(self, http: httpx.Client, wanted: dict[str, Any]) -> None:
        answer = http.post("/switch", json=wanted)
        assert (answer.status_code, bool(answer.json()["detail"])) == (400, True)


class TestMemory:
    def test_a_killed_sandbox_forgets_nothing(self, tmp_path: Path, key: str) -> None:
        own = SandboxProcess(tmp_path / "ledger.jsonl")
        first = httpx.post(f"{own.url}/billing/invoices", json={"a": 1}, headers={"Idempotency-Key": key})
        own.fault("hide_effect", "/tickets")
        httpx.post(f"{own.url}/tickets", json={"reference": key})
        before = own.ledger()
        own.kill()
        own.start()
        assert own.ledger() == before
        again = httpx.post(f"{own.url}/billing/invoices", json={"a": 1}, headers={"Idempotency-Key": key})
        assert (again.json(), again.headers[REPLAYED]) == (first.json(), "true")
        assert httpx.get(f"{own.url}/tickets", params={"reference": key}).json()["count"] == 0
        own.stop()

    def test_a_torn_last_line_did_not_happen(self, tmp_path: Path, key: str) -> None:
        own = SandboxProcess(tmp_path / "ledger.jsonl")
        httpx.post(f"{own.url}/charges", json={}, headers={"Idempotency-Key": key})
        own.kill()
        with own.ledger_file.open("ab") as ledger:
            ledger.write(b'{"record":"effect","ki')
        own.start()
        httpx.post(f"{own.url}/charges", json={}, headers={"Idempotency-Key": key})
        assert own.count("charge", key=key) == 2
        own.kill()
        own.start()
        assert own.count("charge", key=key) == 2
        own.stop()

    @pytest.mark.parametrize(
        ("variable", "port"),
        [
            ("CHECKPOINT_SANDBOX_PORT", attrgetter("port")),
            ("CHECKPOINT_SANDBOX_MAIL_PORT", attrgetter("mail_port")),
        ],
    )
    def test_a_busy_port_is_one_clear_line(
        self, sandbox: SandboxProcess, tmp_path: Path, variable: str, port: Callable[[SandboxProcess], int]
    ) -> None:
        free = {"CHECKPOINT_SANDBOX_PORT": "0", "CHECKPOINT_SANDBOX_MAIL_PORT": "0"}
        taken = {**free, variable: str(port(sandbox)), "CHECKPOINT_SANDBOX_LEDGER": str(tmp_path / "x.jsonl")}
        command = [sys.executable, "-m", "workers.sandbox"]
        run = subprocess.run(command, env={**os.environ, **taken}, capture_output=True, text=True, check=False)
        assert run.returncode != 0
        assert f"port {port(sandbox)} cannot be used" in run.stderr.strip()
        assert f"set {variable} to a free one" in run.stderr
        assert "\n" not in run.stderr.strip()


def test_the_page_shows_people_what_happened_and_escapes_it(http: httpx.Client, key: str) -> None:
    post(http, "/charges", key, note="<script>alert(1)</script>")
    page = http.get("/", params={"find": key})
    assert "1 effect" in page.text
    assert "CHG-" in page.text
    assert "<script>" not in page.text


def test_a_mail_is_in_the_mailbox_found_by_its_key_and_survives_a_kill(tmp_path: Path, key: str) -> None:
    own = SandboxProcess(tmp_path / "ledger.jsonl")
    message = EmailMessage()
    message["From"], message["To"], message["Message-ID"] = "a@example.com", "dana@example.com", f"<{key}@example.com>"
    message["Subject"] = "<b>Grüße</b>"
    message.set_content("Zeile\n")
    try:
        with smtplib.SMTP("127.0.0.1", own.mail_port) as mail:
            mail.send_message(message, to_addrs=["dana@example.com", "zoe@example.com"])
        own.kill()
        own.start()
        found = httpx.get(f"{own.url}/mail", params={"key": key}, trust_env=False).json()
        page = httpx.get(own.url, trust_env=False).text
    finally:
        own.stop()
    assert found["count"] == 1
    (kept,) = found["mails"]
    assert (kept["message_id"], kept["subject"], kept["to"]) == (
        f"{key}@example.com",
        "<b>Grüße</b>",
        ["dana@example.com"],
    )
    mailbox = page.partition("Mailbox")[2]
    assert "&lt;b&gt;Grüße&lt;/b&gt;" in mailbox
    assert "dana@example.com, zoe@example.com" in mailbox


def in_background(http: httpx.Client, key: str) -> threading.Thread:
    thread = threading.Thread(target=post, args=(http, "/billing/invoices", key), kwargs={"amount": 5})
    thread.start()
    return thread
