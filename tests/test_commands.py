"""The command line: what it prints, what it stores, how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from approvals.models import Decision
from checkpoint import clock
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.config.environment import BASE_DIR
from checkpoint.models import Case, Step, ToolVersion, Workflow
from checkpoint.short_ids import short
from checkpoint.states import CaseStatus, StepStatus, WorkflowStatus
from tests import factories
from tests import submissions as driver
from tests.sandbox_driver import wait_for

pytestmark = pytest.mark.usefixtures("database")


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def run(name: str, *arguments: str, **options: Any) -> Ended:
    """Runs the command here; the exit code is what `manage.py` would exit with."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    try:
        call_command(name, *arguments, stdout=out, stderr=err, **options)
    except CommandError as error:
        code, _ = error.returncode, err.write(f"{error}\n")
    except SystemExit as ended:
        code = int(str(ended.code))
    return Ended(code, out.getvalue(), err.getvalue())


@pytest.fixture
def good_file(tmp_path: Path) -> Path:
    """A file that can be submitted."""
    driver.published()
    file = tmp_path / "invoice.json"
    file.write_text(json.dumps(driver.document(driver.invoice(), driver.mail())))
    return file


@pytest.fixture
def bad_file(tmp_path: Path) -> Path:
    """A file with three faults."""
    driver.published()
    file = tmp_path / "bad.yaml"
    file.write_text("steps:\n- {name: a, tool: mail.sent}\n- {name: a, tool: mail.send, arguments: {to: 2026-01-01}}\n")
    return file


def test_submit_stores_the_file_and_says_the_id(good_file: Path) -> None:
    ended = run("submit", str(good_file))
    workflow = Workflow.objects.get()
    assert ended.code == 0
    assert str(workflow.pk) in ended.out
    assert workflow.steps.count() == 2


def test_submit_with_json_prints_one_object(good_file: Path) -> None:
    ended = run("submit", str(good_file), json=True)
    assert json.loads(ended.out) == {
        "id": str(Workflow.objects.get().pk),
        "status": "planned",
        "team": "default",
        "steps": 2,
    }


def test_submit_reports_every_fault_on_a_line_of_its_own_and_stores_nothing(bad_file: Path) -> None:
    ended = run("submit", str(bad_file))
    paths = [line.split(": ")[0] for line in ended.err.splitlines()]
    assert ended.code == 2
    assert paths[:-1] == ["/goal", "/steps/0/tool", "/steps/1/arguments/to", "/steps/1/name"]
    assert "4 faults; nothing was stored" in ended.err
    assert not Workflow.objects.exists()


def test_submit_with_json_prints_the_faults_for_programs(bad_file: Path) -> None:
    ended = run("submit", str(bad_file), json=True)
    answer = json.loads(ended.out)
    assert answer["code"] == "submission_invalid"
    assert answer["faults"][0] == {"path": "/goal", "message": "is missing"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.yaml"], 2, "cannot be read"),
        (["{good}", "--team", "nobody"], 1, "There is no team 'nobody'; there are: default"),
        (["{good}", "--as", "nobody"], 1, "There is no active user 'nobody'"),
    ],
)
def test_submit_says_in_one_line_what_is_wrong(good_file: Path, arguments: list[str], code: int, words: str) -> None:
    ended = run("submit", *(argument.format(good=good_file) for argument in arguments))
    assert (ended.code, len(ended.err.splitlines())) == (code, 1)
    assert words in ended.err
    assert not Workflow.objects.exists()


def test_submit_as_somebody_needs_that_persons_right_and_team(good_file: Path) -> None:
    billing, default = factories.team("Billing"), factories.team("Default")
    factories.person("ada", groups=["Operator"], teams=[billing])
    factories.person("bob", teams=[default])
    factories.person("eve", groups=["Operator"], teams=[default])
    assert (
        "There is no team default that you may see" in run("submit", str(good_file), "--as", "ada", team="default").err
    )
    assert "you may not submit workflows" in run("submit", str(good_file), "--as", "bob").err
    assert run("submit", str(good_file), "--as", "eve").code == 0
    assert run("submit", str(good_file), "--as", "ada").code == 0, "the only team that ada belongs to"
    submitted = Workflow.objects.values_list("submitted_by__username", "team__slug").order_by("id")
    assert list(submitted) == [("eve", "default"), ("ada", "billing")]


W = WorkflowStatus


@pytest.mark.parametrize(
    ("way", "code"), [([W.NEEDS_REVIEW], 3), ([W.EXECUTING, W.AWAITING_AGENT], 4), ([W.ABANDONED], 5)]
)
def test_submit_wait_ends_when_somebody_has_to_act(good_file: Path, way: list[WorkflowStatus], code: int) -> None:
    with ThreadPoolExecutor(1) as others:
        moved = others.submit(_move_when_submitted, way)
        ended = run("submit", str(good_file), "--wait", "20")
        moved.result()
    assert ended.code == code
    assert ended.out.splitlines()[-1] == f"workflow: {way[-1].value.replace('_', ' ')}"


def _move_when_submitted(way: list[WorkflowStatus]) -> None:
    """Stands in for the engine, which has tests of its own."""
    try:
        workflow = wait_for(Workflow.objects.first, 30)
        if W.ABANDONED in way:
            Step.objects.filter(workflow=workflow).update(status=StepStatus.ABANDONED)
        for version, status in enumerate(way, 2):
            gone = {"ended_at": clock.now(), "wake_at": None} if status is W.ABANDONED else {}
            Workflow.objects.filter(pk=workflow.pk).update(status=status, version=version, **gone)
    finally:
        connection.close()


def test_submit_wait_names_what_it_saw_and_says_when_the_time_is_over(good_file: Path) -> None:
    ended = run("submit", str(good_file), "--wait", "0.1")
    assert ended.code == 6
    assert "manage.py explain" in ended.err


def test_submit_reads_standard_input_and_its_exit_code_reaches_the_shell(database: Addresses) -> None:
    driver.published()
    command = [sys.executable, str(BASE_DIR / "manage.py"), "submit", "-"]
    good = subprocess.run(command, input=json.dumps(driver.document()), capture_output=True, text=True, timeout=60)
    bad = subprocess.run(command, input="goal: \xff".encode("latin-1"), capture_output=True, timeout=60)
    assert (good.returncode, good.stderr) == (0, "")
    assert bad.returncode == 2
    assert bad.stderr.decode().startswith("/: not UTF-8: byte 6 cannot be read")
    assert Workflow.objects.count() == 1


def test_a_database_that_is_away_is_one_line_and_no_traceback() -> None:
    env = {**os.environ, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
    for command in (["explain", "12345678"], ["verify_audit"], ["publish_tools"]):
        call = [sys.executable, str(BASE_DIR / "manage.py"), *command]
        ended = subprocess.run(call, env=env, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 1
        assert len(ended.stderr.splitlines()) == 1
        assert "Is `make up` running?" in ended.stderr


def test_explain_takes_the_end_of_an_id() -> None:
    workflow = driver.submitted(driver.invoice(), driver.mail(to={"$result": "invoice#/facts/address"}))
    ended = run("explain", short(workflow.pk))
    assert ended.code == 0
    assert f"task {workflow.pk}: planned" in ended.out
    assert "1. invoice: prepared, by invoice.create@1" in ended.out
    assert "next: it is executed" in ended.out
    assert "next: its turn comes when every step at position 1 is verified" in ended.out


def test_explain_with_json_is_for_programs() -> None:
    workflow = driver.submitted(driver.invoice())
    told = json.loads(run("explain", str(workflow.pk), json=True).out)
    assert (told["id"], told["status"], told["steps"][0]["outlook"]) == (
        str(workflow.pk),
        "planned",
        {"words": "it is executed", "at": None},
    )


@pytest.mark.parametrize("id_", ["12345678", "x", "123", "0198c0de-0000-7000-8000-000000000000"])
def test_an_unknown_id_is_one_clear_line(id_: str) -> None:
    for ended in (
        run("explain", id_),
        run("decide", id_, "confirm", reason="…", user=factories.person(f"p{id_}").username),
    ):
        assert ended.code == 1
        assert len(ended.err.splitlines()) == 1
        assert id_ in ended.err


def test_an_ambiguous_id_is_refused() -> None:
    for first in (1, 2):
        factories.workflow(id=f"0000000{first}-0000-7000-8000-0000deadbeef")
    assert "More than one workflow ends in deadbeef" in run("explain", "deadbeef").err


def test_explain_shows_only_what_the_person_may_see() -> None:
    workflow = driver.submitted()
    factories.person("eve", teams=[factories.team("Elsewhere")])
    assert f"There is no workflow {workflow.pk}" in run("explain", str(workflow.pk), "--as", "eve").err


def test_text_of_others_cannot_steer_the_terminal() -> None:
    workflow = driver.submitted(goal="innocent\x1b[2J\u202egnp")
    assert "innocent<U+001B>[2J<U+202E>gnp" in run("explain", str(workflow.pk)).out


def test_names_in_a_file_cannot_steer_the_terminal(bad_file: Path) -> None:
    bad_file.write_text(json.dumps({"\x1b[2J\u202e": 1}))
    ended = run("submit", str(bad_file))
    assert (ended.code, "<U+001B>[2J<U+202E>" in ended.err, "\x1b" in ended.err) == (2, True, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("submit", "{good}", "--team", "\udcff"),
        ("submit", "{good}", "--as", "\udcff"),
        ("decide", "00000000", "retry", "--reason", "\udcff"),
        ("decide", "00000000", "retry", "--reason", "Asked.", "--operation-id", "\udcff"),
        ("case", "00000000", "assign", "\udcff", "--reason", "Asked."),
    ],
)
def test_an_argument_that_is_not_utf_8_is_one_clear_line(good_file: Path, arguments: tuple[str, ...]) -> None:
    ended = run(*(argument.format(good=good_file) for argument in arguments))
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert "not UTF-8" in ended.err


@pytest.mark.parametrize("wait", ["-5", "nan", "soon"])
def test_a_time_to_wait_that_is_none_is_refused_before_anything_is_stored(good_file: Path, wait: str) -> None:
    assert "is no number of seconds" in run("submit", str(good_file), f"--wait={wait}").err
    assert not Workflow.objects.exists()


def test_whoever_stops_reading_gets_no_traceback() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "manage.py", "verify_audit"]
    ended = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, cwd=BASE_DIR, check=False)
    os.close(writes)
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.fixture
def case() -> Case:
    """An open question that ada may decide."""
    factories.person("ada", groups=["Approver"], teams=[factories.team()])
    return factories.case()


def test_decide_shows_the_question_with_its_arguments_and_carries_the_answer_out(case: Case) -> None:
    ended = run(
        "decide", short(case.pk), "confirm", "--as", "ada", reason="It is in the bank's list.", operation_id="op_9"
    )
    assert ended.code == 0
    assert case.sentence in ended.out
    assert case.step.arguments is not None
    assert case.step.arguments in ended.out
    assert "Search the card processor's dashboard" in ended.out
    decision = Decision.objects.get()
    assert (decision.person_name, decision.channel, decision.operation_id) == ("ada", "command", "op_9")
    assert Step.objects.get(pk=case.step_id).status in (StepStatus.COMMITTED, StepStatus.VERIFIED)


def test_decide_on_a_closed_case_says_who_decided_and_changes_nothing(case: Case) -> None:
    factories.person("bob", groups=["Approver"], teams=[factories.team()])
    assert run("decide", str(case.pk), "retry", "--as", "ada", reason="It is not there.").code == 0
    ended = run("decide", str(case.pk), "confirm", "--as", "bob", reason="It is there.")
    assert ended.code == 3
    assert "ada already decided" in ended.err
    assert Decision.objects.count() == 1


def test_decide_refuses_an_answer_that_the_reason_does_not_allow(case: Case) -> None:
    ended = run("decide", str(case.pk), "acknowledge", "--as", "ada", reason="Fine.")
    assert ended.code == 3
    assert "confirm, retry, abandon" in ended.err
    assert Case.objects.get().status == CaseStatus.OPEN


def test_decide_needs_somebody_who_may(case: Case) -> None:
    factories.person("eve", teams=[factories.team()])
    assert "you may not decide cases" in run("decide", str(case.pk), "confirm", "--as", "eve", reason="Sure.").err
    assert "There is no active user" in run("decide", str(case.pk), "confirm", "--as", "nobody", reason="Sure.").err
    assert Case.objects.get().status == CaseStatus.OPEN


def test_verify_audit_finds_the_first_broken_link(database: Addresses) -> None:
    workflow = driver.submitted()
    factories.audited(workflow, "note", "workflow")
    assert run("verify_audit").out.startswith("2 chains, every link intact.\n")
    with psycopg.connect(database.superuser) as intruder:
        intruder.execute("SET session_replication_role = replica")
        intruder.execute(
            "UPDATE checkpoint_auditentry SET text = replace(text, 'tests', 'nobody') WHERE stream_id = %s AND seq = 1",
            [workflow.pk],
        )
    ended = run("verify_audit")
    assert ended.code == 1
    assert f"workflow/{workflow.pk}: entry 1: the text does not match its hash" in ended.err


def test_publish_tools_publishes_what_this_code_has_once() -> None:
    first, second = run("publish_tools"), run("publish_tools")
    assert "Published http.request@" in first.out
    assert "0 of them new" in second.out
    assert ToolVersion.objects.filter(name="http.request").count() == 1
