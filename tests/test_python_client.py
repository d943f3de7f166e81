"""The Python client against the real server: programs are killed, run again, and never do a thing twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from checkpoint_client import (
    AsyncClient,
    Client,
    NotApplied,
    NotBegun,
    NotRecorded,
    Receipt,
    Refused,
    Unreachable,
    Waiting,
)

from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Attempt, Case, Step, Workflow
from checkpoint.states import StepStatus, WorkflowStatus
from tests import approval_driver
from tests.agent_driver import bot, register
from tests.api_driver import token_of
from tests.journal_driver import JournalDriver
from tests.test_commands import run as manage
from tests.time_driver import MovableTime, time_machine

__all__ = ["time_machine"]

pytestmark = pytest.mark.usefixtures("database")

CLIENT = BASE_DIR / "clients" / "python"
TOOL = "default:crm.update"

# Dies where it is told to, as a machine would.
MORTAL = """
    import os, pathlib, sys
    from checkpoint_client import CheckpointError, Client

    def die(where):
        if os.environ.get("DIE") == where:
            os.kill(os.getpid(), 9)

    with Client.from_env() as client:
        run = client.run("crm/mortal", goal="Keep the records right.")

        @run.step("default:crm.update")
        def update(customer, cents):
            with open(sys.argv[1], "a") as calls:
                calls.write(customer + chr(10))
            die("inside")
            return {"rows": 1}

        die("before")
        try:
            print(update(customer="acme")["rows"])
        except CheckpointError as error:
            sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def token() -> str:
    """Of an agent whose team has a tool of its own."""
    register()
    return token_of(bot(), days=30)


@pytest.fixture
def client(web_server: str, token: str) -> Iterator[Client]:
    """A program's client."""
    with Client(web_server, token) as made:
        yield made


class Program:
    """A script with a log of its calls, run as often as wanted."""

    def __init__(self, file: Path, calls: Path, environment: dict[str, str]) -> None:
        self.file, self.log = file, calls
        self._environment = {**os.environ, **environment, "PYTHONPATH": str(CLIENT / "src")}

    def run(self, *, die: str = "") -> subprocess.CompletedProcess[str]:
        """One run, to its end or its death."""
        return subprocess.run(
            [sys.executable, str(self.file), str(self.log)],
            env=self._environment | {"DIE": die}, capture_output=True, text=True, timeout=100,
        )  # fmt: skip

    @property
    def calls(self) -> int:
        """How often the function was called, in all runs."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def program(web_server: str, token: str, tmp_path: Path) -> Program:
    """The one that can be killed."""
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(MORTAL))
    return Program(file, tmp_path / "calls", {"CHECKPOINT_URL": web_server, "CHECKPOINT_TOKEN": token})


def test_the_second_run_gets_the_recorded_result(program: Program) -> None:
    assert [program.run().stdout for _ in range(3)] == ["1\n"] * 3
    assert (program.calls, Workflow.objects.count(), Attempt.objects.count()) == (1, 1, 1)


def test_killed_inside_it_is_never_called_again_and_the_question_is_told(
    program: Program, time_machine: MovableTime
) -> None:
    assert program.run(die="inside").returncode == -9
    again = program.run()
    assert (again.returncode, again.stderr.startswith("NotBegun: Step “update” was not run")) == (1, True)
    for _ in range(2):
        time_machine.pass_seconds(61)
        JournalDriver().turn()
    told = program.run().stderr
    assert told.startswith("Waiting: Step “update” was not run, it waits (question)")
    assert f"/api/v1/cases/{Case.objects.get().pk}/" in told
    assert (program.calls, Attempt.objects.count(), Step.objects.get().status) == (1, 1, StepStatus.UNCERTAIN)


def test_killed_before_it_began_it_runs_once(program: Program) -> None:
    assert program.run(die="before").returncode == -9
    assert (program.run().stdout, program.run().stdout, program.calls) == ("1\n", "1\n", 1)


def test_the_example_of_the_documentation(web_server: str, token: str, tmp_path: Path) -> None:
    registered = manage("tool", "register", str(CLIENT / "examples" / "crm_tool.yaml"))
    assert registered.code == 0, registered.err
    environment = {"CHECKPOINT_URL": web_server, "CHECKPOINT_TOKEN": token}
    example = Program(CLIENT / "examples" / "first_step.py", tmp_path / "crm", environment)
    for _ in range(2):
        ended = example.run()
        assert (ended.returncode, ended.stdout) == (0, "the limit is 5000\n"), ended.stderr
    assert example.calls == 1
    assert Workflow.objects.get().status == WorkflowStatus.COMPLETED


def test_steps_follow_each_other_and_results_come_back_as_they_were(client: Client) -> None:
    calls: list[str] = []

    def a_run() -> list[Any]:
        run = client.run("crm/all", goal="Keep the records right.")

        @run.step(TOOL)
        def first(customer: str, cents: int) -> int:
            calls.append(customer)
            return cents

        @run.step(TOOL)
        def second(customer: str, cents: int) -> Receipt:
            calls.append(customer)
            return Receipt({"rows": 2}, operation_id="crm-2")

        return [first(customer="a", cents=7), second(customer="b").operation_id]

    assert [a_run(), a_run()] == [[7, "crm-2"]] * 2
    assert calls == ["a", "b"]
    client.run("crm/all", goal="").seal("done")
    assert client.workflow(str(Workflow.objects.get().pk))["status"] == "completed"


def test_by_a_block_and_held_meanwhile(client: Client) -> None:
    run = client.run("crm/block", goal="Keep the records right.")
    for is_new in (True, False):
        with run.attempt("update", TOOL, {"customer": "a"}) as attempt:
            assert (attempt.is_new, attempt.arguments["cents"]) == (is_new, 1)
            if attempt.is_new:
                client.hold(attempt, 30)
                attempt.done(Receipt({"rows": 3}, reading={"rows": 3}))
            assert attempt.receipt is not None
            assert dict(attempt.receipt.facts) == {"rows": 3}
    assert Step.objects.get().standing == "attested"


def test_an_exception_leaves_it_unknown_unless_it_says_that_nothing_happened(client: Client) -> None:
    run = client.run("crm/errors", goal="Keep the records right.")

    @run.step(TOOL)
    def refused(customer: str, cents: int) -> None:
        raise NotApplied("the record is locked", retry_after=60)

    def broken(customer: str, cents: int) -> None:
        raise OSError("the line went dead")

    with pytest.raises(NotApplied):
        refused(customer="a")
    assert Step.objects.get().status == StepStatus.FAILED
    with pytest.raises(Waiting, match="time"):
        refused(customer="a")
    other = client.run("crm/others", goal="Keep the records right.")
    with pytest.raises(OSError, match="went dead"):
        other.step(TOOL)(broken)(customer="b")
    JournalDriver().turn()
    assert "the line went dead" in str(Case.objects.get().findings)


def test_an_approval_is_waited_for(client: Client) -> None:
    approval_driver.ask()
    run = client.run("crm/asked", goal="Keep the records right.")
    update = run.step(TOOL, name="update")(lambda customer, cents: {"rows": 1})
    with pytest.raises(Waiting) as waits:
        update(customer="a")
    approval = approval_driver.pending(Workflow.objects.get())
    assert (waits.value.waits_for, str(approval.pk) in waits.value.look_at) == ("approval", True)
    approval_driver.answer(approval, approval_driver.approver())
    assert update(customer="a") == {"rows": 1}


class Lossy(httpx.HTTPTransport):
    """A line that loses the answer of every first request to an address, after the server did the work."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: set[tuple[str, str]] = set()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        name = (request.method, request.url.path)
        if name not in self.lost:
            self.lost.add(name)
            response.close()
            raise httpx.ReadError("lost", request=request)
        return response


def test_s50_lost_answers_are_asked_for_again_and_double_nothing(web_server: str, token: str) -> None:
    calls = []

    def update(customer: str, cents: int) -> dict[str, int]:
        calls.append(customer)
        return {"rows": 1}

    with Client(web_server, token, transport=Lossy()) as client:
        run = client.run("crm/lossy", goal="Keep the records right.")
        result = run.step(TOOL)(update)(customer="a")
        run.seal("done")
    assert (result, calls, Workflow.objects.count(), Attempt.objects.count()) == ({"rows": 1}, ["a"], 1, 1)


def test_what_could_not_be_recorded_is_recorded_later(web_server: str, token: str) -> None:
    with Client(web_server, token) as client:
        run = client.run("crm/offline", goal="Keep the records right.")

        def update(customer: str, cents: int) -> dict[str, int]:
            client._http.base_url = httpx.URL("http://127.0.0.1:9/api/v1/")  # from here on nobody answers
            return {"rows": 1}

        with pytest.raises(NotRecorded, match="Do not repeat it") as lost:
            run.step(TOOL)(update)(customer="a")
    with Client(web_server, token) as client:
        with pytest.raises(NotBegun):
            client.run("crm/offline", goal="").step(TOOL)(update)(customer="a")
        client.record(lost.value.step_id, lost.value.report)
    assert Step.objects.get().status == StepStatus.VERIFIED


def test_refusals_and_silence_say_what_to_do(web_server: str, token: str) -> None:
    with Client(web_server, token) as client, pytest.raises(Refused, match="unknown tool") as refused:
        client.submit({"goal": "x", "steps": [{"name": "a", "tool": "nothing", "arguments": {}}]})
    assert (refused.value.status, refused.value.code) == (422, "submission_invalid")
    with Client("http://127.0.0.1:9", token) as client, pytest.raises(Unreachable, match="CHECKPOINT_URL"):
        client.workflow("x")


def test_coroutines_too(web_server: str, token: str) -> None:
    calls = []

    async def program() -> list[Any]:
        async with AsyncClient(web_server, token) as client:
            run = client.run("crm/async", goal="Keep the records right.")

            @run.step(TOOL)
            async def update(customer: str, cents: int) -> dict[str, int]:
                calls.append(customer)
                return {"rows": cents}

            found = [await update(customer="a", cents=4), await update(customer="a", cents=4)]
            await run.seal("done")
            return found

    assert asyncio.run(program()) == [{"rows": 4}] * 2
    assert calls == ["a"]
    assert Workflow.objects.get().status == WorkflowStatus.COMPLETED


def test_two_programs_with_one_reference_are_one_run(client: Client) -> None:
    document = {
        "goal": "x",
        "reference": "crm/one",
        "steps": [{"name": "a", "tool": TOOL, "arguments": {"customer": "a"}}],
    }
    client.submit(document)
    with pytest.raises(Refused, match="go on with that one") as refused:
        client.submit(document)
    assert refused.value.code == "reference_taken"
    with pytest.raises(Refused, match="must be a name"):
        client.submit({**document, "reference": "not a name"})
    assert Workflow.objects.count() == 1
