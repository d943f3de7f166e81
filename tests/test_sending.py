"""Tools say how far a call has come: a byte may have left, or the provider has answered. Neither a moment too late."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoint.outcomes import NotApplied, Receipt
from tests import test_file_write as files
from tests.http_driver import arguments, call, tool
from tests.odd_provider import OddProvider, Received, answer
from workers.registry import Deadline, reports_sending
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


def test_only_a_tool_that_promises_it_says_itself_when_it_sends() -> None:
    class Keeps(FileWrite):
        reports_sending = False

    assert reports_sending(FileWrite())
    assert reports_sending(HttpRequest())
    assert not reports_sending(Keeps())
