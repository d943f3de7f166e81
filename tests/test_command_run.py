"""`command.run` with real programs: what is allowed, what exit codes prove, and that nothing outlives its worker."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpoint.artifacts import open_verified
from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import RecoveryClass
from checkpoint.errors import ArgumentsInvalid
from checkpoint.models import Artifact
from checkpoint.outcomes import Absent, Found, Inconclusive, NotApplied, NotVisible, Pending, Visible
from checkpoint.planning.argument_schemas import closed, match_variant, prepare_arguments
from tests import submissions
from tests.http_driver import call
from tests.sandbox_driver import wait_for
from tests.test_artifacts import folder
from workers.publishing import declaration
from workers.tools import command_output
from workers.tools.command_list import Command, Commands, load
from workers.tools.command_run import CommandArguments, CommandRun, OutcomeUnknown
from workers.tools.operator_lists import ListInvalid
from workers.tools.secrets import Secrets

__all__ = ["folder"]

SCHEMA = closed(CommandArguments.model_json_schema())
WHERE = "Look into the ledger."


def arguments(*given: str, command: str = "work") -> CommandArguments:
    text = prepare_arguments(SCHEMA, {"command": command, "arguments": list(given)})
    return CommandArguments.model_validate_json(text, strict=True)


def sha256_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def fact(printed: bytes) -> dict[str, Any]:
    digest = sha256_of(printed).removeprefix("sha256:")
    return {"bytes": len(printed), "sha256": digest, "head": printed.decode()}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "work"


def tool(script: Path, body: str, known: dict[str, str] | None = None, **more: Any) -> CommandRun:
    """A tool whose only command is a shell script with this body; every argument is allowed unless said otherwise."""
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return CommandRun(Commands([Command.model_validate(entry(script, **more))]), Secrets(known or {}))


def entry(script: Path, **more: Any) -> dict[str, Any]:
    usual = {"name": "work", "program": str(script), "allowed_arguments": [".*"], "where_to_look": WHERE}
    return {**usual, **more}


class TestRunning:
    def test_what_it_printed_is_kept_by_its_beginning_size_and_hash_and_as_an_artifact(
        self, script: Path, folder: Path
    ) -> None:
        made = replace(call(), workflow_id=str(submissions.submitted().pk))
        receipt = tool(script, 'printf "%s|" "$@"; printf err >&2').execute(arguments("a b", "$(id)", ";", "*"), made)
        out = b"a b|$(id)|;|*|"
        assert receipt.facts == {
            "exit_code": 0,
            "stdout": fact(out) | {"artifact": sha256_of(out)},
            "stderr": fact(b"err") | {"artifact": sha256_of(b"err")},
        }

    def test_more_output_than_is_kept_neither_blocks_nor_is_kept(self, script: Path) -> None:
        body = f"{sys.executable} -c \"import sys; sys.stdout.write('x' * 3000000); sys.stderr.write('y' * 3000000)\""
        facts = tool(script, body).execute(arguments(), call(seconds=60)).facts
        for name in ("stdout", "stderr"):
            assert (facts[name]["bytes"], len(facts[name]["head"])) == (3_000_000, 2048)

    def test_its_environment_has_nothing_of_the_worker_s(self, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
        made = call()
        given = {"environment": {"MODE": "x"}, "secrets": {"TOKEN": "THE_TOKEN"}}
        run = tool(script, "env; pwd; ls -A; cat", {"CHECKPOINT_SECRET_THE_TOKEN": "opensesame"}, **given)
        head = run.execute(arguments(), made).facts["stdout"]["head"]
        lines = dict(line.partition("=")[::2] for line in head.splitlines())
        names = {"PATH", "LANG", "HOME", "TMPDIR", "MODE", "TOKEN", "CHECKPOINT_KEY"}
        assert names <= set(lines) <= names | {"PWD", "OLDPWD", "SHLVL", "_", lines["HOME"]}
        assert (lines["CHECKPOINT_KEY"], lines["TOKEN"]) == (made.key, "[secret THE_TOKEN]")
        assert not Path(lines["HOME"]).exists()

    def test_the_key_and_the_arguments_go_where_the_operator_puts_them(self, script: Path) -> None:
        made = call()
        run = tool(script, 'printf "%s\\n" "$@"', arguments=["--ref={key}", "--", "{arguments}", "end"])
        head = run.execute(arguments("{key}", "x"), made).facts["stdout"]["head"]
        assert head.splitlines() == [f"--ref={made.key}", "--", "{key}", "x", "end"]

    def test_what_cannot_be_kept_does_not_hide_how_it_ended(self, script: Path) -> None:
        facts = tool(script, "echo done").execute(arguments(), call()).facts
        assert (facts["exit_code"], facts["stdout"]["head"]) == (0, "done\n")
        assert "ValueError" in facts["stdout"]["not_kept"], "the call is one of no workflow"

    @pytest.mark.parametrize("shift", range(-12, 2))
    def test_a_secret_at_the_edge_of_what_is_kept_is_not_cut_in_two(
        self, monkeypatch: pytest.MonkeyPatch, shift: int
    ) -> None:
        monkeypatch.setattr(command_output, "LARGEST_KEPT", 5000)
        secrets = Secrets({"CHECKPOINT_SECRET_THE_TOKEN": "opensesame"})
        for limit in (command_output.LARGEST_HEAD, 5000):
            stream = command_output.Stream()
            for chunk in (b"\xff" * (limit + shift), b"opensesame", b"x" * 20000):
                stream.add(chunk)
            kept = stream.beginning(secrets.redact, limit=limit)
            assert (len(kept), b"o" in kept, kept.startswith(b"\xff" * (limit - 12))) == (limit, False, True)

    def test_a_secret_is_in_no_artifact_and_bytes_stay_bytes(self, script: Path, folder: Path) -> None:
        known = {"CHECKPOINT_SECRET_THE_TOKEN": "opensesame"}
        made = replace(call(), workflow_id=str(submissions.submitted().pk))
        tool(script, "printf '\\377 opensesame'; exit 7", known, success_codes=[7]).execute(arguments(), made)
        with open_verified(Artifact.objects.get()) as kept:
            assert kept.read() == b"\xff [secret THE_TOKEN]"
        assert Artifact.objects.get().media_type == "application/octet-stream"


class TestWhatIsAllowed:
    def test_a_command_that_is_on_no_list(self, script: Path) -> None:
        with pytest.raises(NotApplied, match="no command other") as refused:
            tool(script, "").execute(arguments(command="other"), call())
        assert (refused.value.code, refused.value.permanent) == ("not_allowed", True)

    @pytest.mark.parametrize("given", [["--force"], ["a.pdf\n"], ["a.pdf x"], ["a.pdf", "b.pdf"], [""]])
    def test_an_argument_that_no_rule_matches_as_a_whole(self, script: Path, tmp_path: Path, given: list[str]) -> None:
        run = tool(script, f"touch {tmp_path}/ran", allowed_arguments=[r"[a-z]+\.pdf"], most_arguments=1)
        with pytest.raises(NotApplied) as refused:
            run.execute(arguments(*given), call())
        assert (refused.value.code, refused.value.permanent) == ("argument_refused", True)
        assert not (tmp_path / "ran").exists()
        run.execute(arguments("a.pdf"), call())
        assert (tmp_path / "ran").exists()

    @pytest.mark.parametrize(
        ("given", "place", "words"),
        [
            ({"command": "other"}, "/command", 'must be one of "work", "plain"'),
            ({"command": "work", "arguments": ["--force"]}, "/arguments/0", r"what work allows.*\[a-z\]\+.* or x\|y"),
            ({"command": "work", "arguments": ["a.pdf\n"]}, "/arguments/0", "what work allows"),
            ({"command": "work", "arguments": ["xy"]}, "/arguments/0", "what work allows"),
            ({"command": "work", "arguments": ["x", "y", "a.pdf"]}, "/arguments", "at most 2 items"),
            ({"command": "plain", "arguments": ["x"]}, "/arguments", "at most 0 items"),
        ],
    )
    def test_what_the_list_does_not_allow_is_refused_where_it_is_submitted(
        self, script: Path, given: dict[str, Any], place: str, words: str
    ) -> None:
        rules = {"allowed_arguments": [r"[a-z]+\.pdf", "x|y"], "most_arguments": 2}
        commands = [entry(script, **rules), entry(script, name="plain", allowed_arguments=[])]
        schema = declaration(CommandRun(Commands(map(Command.model_validate, commands)))).schema
        with pytest.raises(ArgumentsInvalid) as refused:
            prepare_arguments(schema, given)
        (fault,) = refused.value.faults
        assert fault.path == place
        assert re.search(words, fault.message), fault.message
        prepare_arguments(schema, {"command": "work", "arguments": ["x", "a.pdf"]})
        assert json.loads(prepare_arguments(schema, {"command": "plain"})) == {"command": "plain", "arguments": []}

    def test_where_there_is_no_list_no_plan_is_taken(self) -> None:
        with pytest.raises(ArgumentsInvalid, match="no command on the operator's list"):
            prepare_arguments(declaration(CommandRun(Commands([]))).schema, {"command": "work"})

    @pytest.mark.parametrize("given", ["a\x00b", "x" * 4097])
    def test_what_no_program_can_be_given(self, given: str) -> None:
        with pytest.raises(ArgumentsInvalid):
            arguments(given)


class TestProof:
    @pytest.mark.parametrize("break_it", ["missing", "not executable", "no program"])
    def test_what_cannot_be_started_did_nothing(self, script: Path, break_it: str) -> None:
        run = tool(script, "exit 0")
        if break_it == "missing":
            script.unlink()
        elif break_it == "not executable":
            script.chmod(0o644)
        else:
            script.write_bytes(b"\x00\x01")
        with pytest.raises(NotApplied, match="nothing was started") as refused:
            run.execute(arguments(), call())
        assert (refused.value.code, refused.value.permanent) == ("never_started", False)

    def test_a_deadline_that_passed(self, script: Path, tmp_path: Path) -> None:
        with pytest.raises(NotApplied):
            tool(script, f"touch {tmp_path}/ran").execute(arguments(), call(seconds=-1))
        assert not (tmp_path / "ran").exists()

    def test_only_a_declared_code_proves_that_nothing_happened(self, script: Path) -> None:
        run = tool(script, 'echo no such report >&2; exit "$1"', success_codes=[0, 3], not_applied_codes=[64])
        assert run.execute(arguments("3"), call()).facts["exit_code"] == 3
        with pytest.raises(NotApplied, match="exit code 64: no such report") as refused:
            run.execute(arguments("64"), call())
        assert refused.value.code == "exit_64"
        for code in ("1", "126", "127", "255"):
            with pytest.raises(OutcomeUnknown, match=f"exit code {code}.*not declared"):
                run.execute(arguments(code), call())

    def test_one_that_was_killed_says_nothing(self, script: Path) -> None:
        with pytest.raises(OutcomeUnknown, match="signal 9"):
            tool(script, "kill -KILL $$").execute(arguments(), call())

    def test_a_secret_that_it_prints_is_kept_nowhere(self, script: Path) -> None:
        known = {"CHECKPOINT_SECRET_THE_TOKEN": "opensesame"}
        run = tool(script, 'echo "bad $TOKEN" >&2; exit 5', known, secrets={"TOKEN": "THE_TOKEN"})
        with pytest.raises(OutcomeUnknown, match=r"bad \[secret THE_TOKEN\]"):
            run.execute(arguments(), call())


class TestTheCheck:
    def test_it_tells_whether_a_run_whose_end_was_lost_did_its_work(self, script: Path, tmp_path: Path) -> None:
        ledger = tmp_path / "ledger"
        body = f"""case "$1" in
            --do) echo "$2" >> {ledger}; exit 9;;
            --find) grep -qx "$2" {ledger};;
        esac"""
        check = {"arguments": ["--find", "{key}"], "absent_codes": [1, 2]}
        run = tool(script, body, arguments=["--do", "{key}"], check=check)
        made = call()
        assert isinstance(run.inspect(arguments(), made), Absent)
        with pytest.raises(OutcomeUnknown):
            run.execute(arguments(), made)
        assert isinstance(run.inspect(arguments(), made), Found)
        assert isinstance(run.verify(arguments(), made), Visible)
        assert isinstance(run.inspect(arguments(), call()), Absent)
        assert ledger.read_text() == f"{made.key}\n"

    def test_its_codes_mean_what_is_declared_and_else_nothing(self, script: Path) -> None:
        check = {"arguments": ["{arguments}"], "found_codes": [0], "absent_codes": [1], "pending_codes": [2]}
        run = tool(script, 'exit "$1"', check=check)
        answers = [type(run.inspect(arguments(code), call())) for code in ("0", "1", "2", "3")]
        assert answers == [Found, Absent, Pending, Inconclusive]
        seen = [type(run.verify(arguments(code), call())) for code in ("0", "1", "2", "3")]
        assert seen == [Visible, NotVisible, NotVisible, NotVisible]
        script.unlink()
        assert isinstance(run.inspect(arguments("0"), call()), Inconclusive)

    @pytest.mark.parametrize("checked", [True, False])
    def test_the_contract(self, script: Path, checked: bool) -> None:
        check: dict[str, Any] = {"check": {"arguments": [], "absent_codes": [1]}} if checked else {}
        variants = {one.name: one for one in tool(script, "", **check).variants()}
        stored = arguments().model_dump()
        picked = match_variant([{"name": one.name, "when": one.when} for one in variants.values()], stored)
        contract = variants[picked].contract
        recovery = RecoveryClass.QUERYABLE if checked else RecoveryClass.OPAQUE
        assert (contract.recovery, contract.can_inspect, contract.can_verify) == (recovery, checked, checked)
        assert contract.where_to_look == WHERE


# Writes its pid, and that of one it started, and would then work for a minute.
LONG = 'sleep 60 & echo $$ $! > "$1.new"; mv "$1.new" "$1"; sleep 60; exit 0'


def pids(file: Path) -> list[int]:
    return wait_for(lambda: [int(pid) for pid in file.read_text().split()] if file.exists() else None, 60)


def gone(pid: int) -> bool:
    """Whether it runs no more; a zombie that nobody has collected yet runs no more either."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except FileNotFoundError:
        return Path("/proc/self").exists()


class TestNothingOutlivesItsWorker:
    def test_at_the_deadline_it_and_what_it_started_are_killed(self, script: Path, tmp_path: Path) -> None:
        run, file = tool(script, LONG), tmp_path / "pids"
        began = time.monotonic()
        with pytest.raises(OutcomeUnknown, match="deadline"):
            run.execute(arguments(str(file)), call(seconds=8))
        assert time.monotonic() - began < 30
        wait_for(lambda: all(gone(pid) for pid in pids(file)))

    def test_what_goes_on_printing_cannot_stretch_its_deadline(self, script: Path) -> None:
        with pytest.raises(OutcomeUnknown, match="deadline"):
            tool(script, "while :; do echo x; done").execute(arguments(), call(seconds=1))

    def test_what_it_left_in_the_background_ends_with_it(self, script: Path, tmp_path: Path) -> None:
        file = tmp_path / "pids"
        body = LONG.replace("sleep 60; exit 0", "exit 0")
        assert tool(script, body).execute(arguments(str(file)), call(seconds=60)).facts["exit_code"] == 0
        wait_for(lambda: all(gone(pid) for pid in pids(file)))

    @pytest.mark.parametrize("whom", ["worker", "guard"])
    def test_killed_with_its_worker_or_its_guard(self, script: Path, tmp_path: Path, whom: str) -> None:
        tool(script, LONG)
        file = tmp_path / "pids"
        code = (
            "import json, sys, django; django.setup(); "
            "from tests.test_command_run import Command, CommandRun, Commands, Secrets, arguments, call; "
            "made = Command.model_validate(json.loads(sys.argv[1])); "
            "CommandRun(Commands([made]), Secrets({})).execute(arguments(sys.argv[2]), call(seconds=120))"
        )
        worker = subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(entry(script)), str(file)], cwd=BASE_DIR, stderr=subprocess.DEVNULL
        )
        try:
            program, started = pids(file)
            os.kill(worker.pid if whom == "worker" else os.getpgid(program), signal.SIGKILL)
            wait_for(lambda: gone(program))
            wait_for(lambda: gone(started))
        finally:
            worker.kill()
            worker.wait()


class TestTheList:
    def test_the_shipped_one_prints_and_its_example_is_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert [one.name for one in load().variants()] == ["print-lines: opaque", "unlisted"]
        shipped = (BASE_DIR / "deploy" / "commands.toml").read_text()
        lines = shipped[shipped.index("# [[command]]") :].splitlines()
        (tmp_path / "commands.toml").write_text("\n".join(line.removeprefix("#").strip() for line in lines))
        monkeypatch.setenv("CHECKPOINT_COMMANDS", str(tmp_path / "commands.toml"))
        assert [one.name for one in load.__wrapped__().variants()] == ["publish-report: queryable, check", "unlisted"]

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ('program = "publish"', "program"),
            ('allowed_arguments = ["("]', "no regular expression"),
            ("not_applied_codes = [0]", "exit code 0 is in success_codes and in not_applied_codes"),
            ('environment = {LD_PRELOAD = "x"}', "environment"),
            ("check = {arguments = []}", "absent_codes"),
            ("check = {arguments = [], absent_codes = [0]}", "exit code 0"),
            ("shell = true", "shell"),
        ],
    )
    def test_a_wrong_entry_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, words: str
    ) -> None:
        given = f'[[command]]\nname = "a"\nwhere_to_look = "x"\n{more}\n'
        (tmp_path / "commands.toml").write_text(given + ("" if "program" in more else 'program = "/bin/true"\n'))
        monkeypatch.setenv("CHECKPOINT_COMMANDS", str(tmp_path / "commands.toml"))
        with pytest.raises(ListInvalid, match=rf"number 1.*{words}"):
            load.__wrapped__()
