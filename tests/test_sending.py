"""Tools say how far a call has come: a byte may have left, or the provider has answered. Neither a moment too late."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from checkpoint.models import Activity
from checkpoint.outcomes import NotApplied, Outcome, OutcomeUnknown, Receipt
from checkpoint.turns.calls import Claim
from checkpoint.turns.flight_records import FlightRecord, Phase
from tests import test_file_write as files
from tests.http_driver import arguments, call, tool
from tests.odd_provider import OddProvider, Received, answer
from workers import flight_recorder, flight_recovery
from workers.flight_recorder import SUFFIX
from workers.hand import make_call
from workers.registry import Call, Deadline, reports_sending
from workers.tools.file_write import FileWrite
from workers.tools.http_request import HttpRequest


class Noted:
    """A slot of a flight recorder that keeps its phases."""

    def __init__(self) -> None:
        self.phases: list[str] = []

    def sending(self) -> None:
        self.phases.append("sending")

    def answered(self, receipt: Receipt) -> None:
        self.phases.append("answered")


def test_a_request_counts_as_sending_before_its_first_byte_arrives() -> None:
    noted = Noted()
    seen: list[list[str]] = []

    def reply(received: Received, connection: socket.socket) -> None:
        seen.append(list(noted.phases))
        answer(200, {})(received, connection)

    with OddProvider() as odd:
        odd.scripts["/pay"] = reply
        made = tool({"name": "odd", "url": f"{odd.url}/", "private": True})
        made.execute(arguments(method="POST", url=f"{odd.url}/pay"), replace(call(), flight=noted))
    assert seen == [["sending"]]
    assert noted.phases == ["sending"]


def test_a_request_whose_connection_is_refused_was_never_sending() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        made, noted = tool({"name": "away", "url": f"{url}/", "private": True}), Noted()
        with pytest.raises(NotApplied):
            made.execute(arguments(method="POST", url=f"{url}/pay"), replace(call(), flight=noted))
    assert noted.phases == []


def test_a_file_counts_as_sending_only_at_its_rename(tmp_path: Path) -> None:
    noted = Noted()
    write = FileWrite(tmp_path)
    write.execute(files.arguments(), replace(call(), flight=noted))
    assert noted.phases == ["sending"]
    again = Noted()
    write.execute(files.arguments(), replace(call(attempt=2), flight=again))
    assert again.phases == [], "the wanted content was there already"


def test_sending_past_the_deadline_is_refused_and_not_noted() -> None:
    noted = Noted()
    with pytest.raises(NotApplied) as refused:
        replace(call(), deadline=Deadline.after(-1), flight=noted).sending()
    assert refused.value.code == "deadline_before_send"
    assert noted.phases == []


class Paying(FileWrite):
    """Does what the test says; says itself when it sends only if the test says so."""

    reports_sending = False

    def __init__(self, act: Callable[[Call], Receipt]) -> None:
        self._act = act

    def execute(self, arguments: object, call: Call) -> Receipt:
        return self._act(call)


class Promising(Paying):
    reports_sending = True


@pytest.fixture
def noting(tmp_path: Path, settings: Settings) -> Callable[[Paying], tuple[Outcome, list[FlightRecord]]]:
    """Makes a call as a hand does it; returns how it went, and what is in the flight recorder then."""
    settings.CHECKPOINT_HOME = tmp_path

    def make(tool: Paying) -> tuple[Outcome, list[FlightRecord]]:
        recorder = flight_recorder.start(worker := uuid.uuid4(), hands=1)
        now, arguments = datetime.now(UTC), files.arguments().model_dump_json()
        ids = (uuid.uuid4(), uuid.uuid4())
        claim = Claim(*ids, "pay", tool.name, "1", Activity.EXECUTE, 1, 1, "key", arguments, 30.0, now)
        recorder.claim([claim])
        outcome = make_call(tool, claim, Deadline.after(10), recorder.slot(claim))
        descriptor = os.open(flight_recorder.folder() / f"{worker}{SUFFIX}", os.O_RDONLY)
        try:
            return outcome, flight_recovery.read(descriptor)[1]
        finally:
            os.close(descriptor)

    return make


PAID = Receipt("op_1", {"amount": 120})
Noting = Callable[[Paying], tuple[Outcome, list[FlightRecord]]]


def _pay(call: Call) -> Receipt:
    return PAID


def _fail(call: Call) -> Receipt:
    raise ConnectionError("reset by peer")


def _fail_after_the_answer(call: Call) -> Receipt:
    call.sending()
    call.answered(PAID)
    raise ConnectionError("the session could not be closed")


def _answer_badly(call: Call) -> Receipt:
    call.sending()
    call.answered(Receipt(facts={"number": float("nan")}))
    return PAID


def _find_other_arguments(call: Call) -> Receipt:
    return replace(PAID, arguments_match=False)


@pytest.mark.parametrize(
    ("tool", "outcome", "phase"),
    [
        (Paying(_pay), Receipt, Phase.ANSWERED),
        (Paying(_fail), OutcomeUnknown, Phase.SENDING),
        (Promising(_fail), OutcomeUnknown, Phase.CLAIMED),
        (Promising(_answer_badly), OutcomeUnknown, Phase.SENDING),
        (Paying(_find_other_arguments), Receipt, Phase.SENDING),
    ],
    ids=["answered", "no answer", "promised and never sent", "an answer that cannot be stored", "other arguments"],
)
def test_what_a_hand_notes_is_never_more_than_what_is_true(
    noting: Noting, tool: Paying, outcome: type, phase: Phase
) -> None:
    came_back, (record,) = noting(tool)
    assert (type(came_back), record.phase) == (outcome, phase)


def test_an_answer_that_was_told_stands_whatever_goes_wrong_after_it(noting: Noting) -> None:
    outcome, (record,) = noting(Promising(_fail_after_the_answer))
    assert outcome == record.outcome == PAID


def test_only_a_tool_that_promises_it_says_itself_when_it_sends() -> None:
    class Keeps(FileWrite):
        reports_sending = False

    assert reports_sending(FileWrite())
    assert reports_sending(HttpRequest())
    assert not reports_sending(Keeps())
