"""An exported file proves itself to somebody who has nothing but the file and Python."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from checkpoint import audit
from checkpoint.config.embedded_postgres import Addresses
from checkpoint.config.environment import BASE_DIR
from checkpoint.errors import Forbidden
from checkpoint.models import Team, Workflow
from checkpoint.people import Actor
from checkpoint.trail import anchor_key, audit_anchors, audit_export
from checkpoint.trail.audit_filter import AuditFilter, read_filter
from checkpoint.trail.audit_formats import FORMATS
from tests import factories
from tests.audit_driver import system_entries
from tests.console_driver import signed_in
from tests.test_commands import run

pytestmark = pytest.mark.usefixtures("database")

SCRIPT = BASE_DIR / "deploy" / "verify_export.py"
AUDREY = Actor("audrey", "command")


def load() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("verify_export", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verifier = load()


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Writes a file and has the script check it; returns exit code and what it says."""

    def checked(text: str, *options: str) -> tuple[int, str]:
        file = tmp_path / "audit.export"
        file.write_text(text, encoding="utf-8", newline="")
        capsys.readouterr()
        code = verifier.main([str(file), *options])
        said = capsys.readouterr()
        return code, said.out + said.err

    return checked


def chain(*reasons: str, actor: str = "ada") -> Workflow:
    """A workflow with an entry for each reason."""
    workflow = factories.workflow(team=Team.objects.get(slug="default"))
    for reason in reasons or ("one", "two", "three", "four"):
        factories.audited(workflow, "note", "workflow", reason=reason, actor=Actor(actor, "console"))
    return workflow


def exported(form: str = "jsonl", **given: str) -> str:
    """An export as text."""
    records = audit_export.export(read_filter(given), person=None, actor=AUDREY)
    return "".join(FORMATS[form](records))


def records(text: str, kind: str) -> list[dict[str, Any]]:
    """The records of a kind in JSON Lines."""
    return [record for record in map(json.loads, text.splitlines()) if record["record"] == kind]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("anchored", [True, False])
def test_a_whole_export_is_intact(check: Callable[..., tuple[int, str]], form: str, anchored: bool) -> None:
    chain(), chain("=1+1", "Ünïcode “quoted”, with\nline ends\r\n", "\u202e")
    if anchored:
        audit_anchors.anchor()
    code, said = check(exported(form))
    assert code == 0, said
    # Two chains and the system's stream: this export's own entry.
    assert "8 entries and the places of 0 left out.\n3 streams" in said
    assert ("1 anchors agree" in said) is anchored


@pytest.mark.parametrize("form", FORMATS)
def test_a_filtered_export_carries_the_places_of_what_it_leaves_out(
    check: Callable[..., tuple[int, str]], form: str
) -> None:
    first = chain("wanted", "secret", "wanted too")
    chain("secret")
    audit_anchors.anchor()
    text = exported(form, words="wanted")
    assert "secret" not in text
    code, said = check(text)
    assert code == 0, said
    assert "2 entries and the places of 1 left out.\n1 streams" in said
    assert "1 anchors agree" in said
    assert str(first.pk) in text


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ({"actor": "eve"}, 1),
        ({"who": "people", "verb": "note"}, 3),
        ({"stream": "system"}, 1),
        ({"since": "2100-01-01"}, 0),
        ({"channel": "console", "until": "2100-01-01T00:00+01:00"}, 3),
    ],
)
def test_filters_are_those_of_the_page(given: dict[str, str], count: int) -> None:
    factories.team("Legal")
    chain("a", "b")
    chain("c", actor="eve")
    assert len(records(exported(**given), "entry")) == count


def test_an_export_is_audited_with_its_filter() -> None:
    exported(actor="eve")
    (entry,) = system_entries("export")
    assert (entry["actor"], entry["subject"], entry["details"]) == ("audrey", "audit", {"filter": {"actor": "eve"}})


def test_only_who_may_view_the_audit_exports_it() -> None:
    with pytest.raises(Forbidden, match=r"checkpoint\.view_audit"):
        audit_export.export(AuditFilter(), person=factories.person("ada", groups=["Operator"]), actor=AUDREY)
    assert system_entries("export") == []


def _edit(kind: str, index: int, **changes: Any) -> Callable[[list[dict[str, Any]]], Any]:
    def edit(lines: list[dict[str, Any]]) -> None:
        [line for line in lines if line["record"] == kind][index].update(changes)

    return edit


def _drop(kind: str, index: int) -> Callable[[list[dict[str, Any]]], Any]:
    def drop(lines: list[dict[str, Any]]) -> None:
        lines.remove([line for line in lines if line["record"] == kind][index])

    return drop


def _cut_tail_and_count(lines: list[dict[str, Any]]) -> None:
    """Takes the last entry and mends the count in the last line."""
    _drop("entry", 3)(lines)
    lines[-1]["entry"] -= 1


def _forget_stream(lines: list[dict[str, Any]]) -> None:
    lines[:] = [line for line in lines if line["record"] != "entry"]
    lines[-1]["entry"] = 0


TAMPERING: list[tuple[Callable[[list[dict[str, Any]]], Any], str]] = [
    (_edit("entry", 1, text="{}"), "entry 2: the text does not match its hash"),
    (_edit("entry", 1, hash="0" * 64), "entry 2: the text does not match its hash"),
    (_edit("entry", 1, text="{}", hash=audit.entry_hash("{}")), "lacks a member or has a wrong one"),
    (_edit("entry", 1, seq=7), "entry 7: entry 2 is missing"),
    (_edit("entry", 1, stream="other"), "stream other, entry 2: entry 1 is missing"),
    (_drop("entry", 1), "entry 3: entry 2 is missing"),
    (_drop("entry", 3), "the end counts other records than there are"),
    (_cut_tail_and_count, "anchor 1 states entry 4, which is missing: its tail was cut"),
    (_forget_stream, "anchor 1 states entry 4, which is missing: its tail was cut"),
    (_drop("head", 0), "anchor 1: its list of heads is not the one that was signed"),
    (_edit("head", 0, hash="0" * 64), "anchor 1: its list of heads is not the one that was signed"),
    (_edit("anchor", 0, signature="00" * 64), "anchor 1: the signature is not that of the key that it names"),
    (_edit("anchor", 0, text="{}"), "lacks a member or has a wrong one"),
    (lambda lines: lines.pop(), "the file has no end"),
    (lambda lines: lines.append(dict(lines[-1])), "there should be no record 'end' here"),
    (lambda lines: lines.insert(1, dict(lines[1])), "its list of heads is not the one that was signed"),
    (lambda lines: lines.insert(-1, dict(lines[1])), "it stands in the wrong place"),
    (lambda lines: lines.insert(-1, {"record": "extra"}), "there should be no record 'extra' here"),
    (lambda lines: lines.pop(1), "a head stands under another anchor"),
]


@pytest.mark.parametrize(("tamper", "said"), TAMPERING)
def test_the_first_broken_place_is_named(
    check: Callable[..., tuple[int, str]], tamper: Callable[[list[dict[str, Any]]], Any], said: str
) -> None:
    workflow = chain()
    audit_anchors.anchor()
    lines = [json.loads(line) for line in exported(stream=str(workflow.pk)).splitlines()]
    tamper(lines)
    code, words = check("".join(json.dumps(line) + "\n" for line in lines))
    assert code == 1, words
    assert words.startswith("BROKEN: ")
    assert said in words


def test_every_cut_of_the_file_is_noticed(check: Callable[..., tuple[int, str]]) -> None:
    chain()
    audit_anchors.anchor()
    text = exported()
    for at in random.Random(7).sample(range(1, len(text) - 1), 40):
        assert check(text[:at])[0] in {1, 2}, f"cut at {at}"


@pytest.mark.parametrize("text", ["", "\n", "[]\n", "{}\n", "a,b\n1,2\n", "\0", '{"record": "export", "form": "x"}\n'])
def test_what_is_no_export_is_said(check: Callable[..., tuple[int, str]], text: str) -> None:
    code, said = check(text)
    assert code in {1, 2}
    assert len(said.splitlines()) == 1


def test_in_csv_no_cell_is_a_formula_and_the_text_stays_exact(check: Callable[..., tuple[int, str]]) -> None:
    hostile = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\tx", "\rx", "＝1", "plain"]  # noqa: RUF001
    workflow = chain(*hostile)
    text = exported("csv", stream=str(workflow.pk))
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    entries = [row for row in rows if row["record"] == "entry"]
    assert [row["reason"] for row in entries] == [f"'{reason}" for reason in hostile[:-1]] + ["plain"]
    assert [json.loads(row["text"])["reason"] for row in entries] == hostile
    cells = [cell for row in rows for cell in row.values() if cell]
    assert not any(cell.startswith(tuple("=+-@\t\r＝＋－＠")) for cell in cells)  # noqa: RUF001
    assert check(text)[0] == 0


def test_a_changed_column_of_the_csv_is_noticed(check: Callable[..., tuple[int, str]]) -> None:
    text = exported("csv", stream=str(chain("approved by ada").pk))
    changed = text.replace(",approved by ada,", ",approved by eve,")
    assert changed != text
    code, said = check(changed)
    assert (code, "the column “reason” does not say what the text says" in said) == (1, True)


def test_the_key_that_is_trusted_must_have_signed(check: Callable[..., tuple[int, str]]) -> None:
    chain()
    audit_anchors.anchor()
    ours = anchor_key.public_text(anchor_key.load())
    text = exported()
    assert check(text, "--key", ours.upper())[0] == 0
    code, said = check(text, "--key", "ab" * 32)
    assert (code, "it was signed with the key" in said) == (1, True)


@pytest.fixture
def forger(database: Addresses) -> Iterator[psycopg.Connection]:
    """Whoever owns the server: no law and no trigger holds."""
    with psycopg.connect(database.superuser, autocommit=True) as above:
        above.execute("SET session_replication_role = replica")
        yield above


def test_an_anchor_kept_elsewhere_proves_a_cut_that_the_export_hides(
    check: Callable[..., tuple[int, str]], forger: psycopg.Connection, tmp_path: Path
) -> None:
    workflow, kept = chain(), str(tmp_path / "anchor.json")
    run("anchor_audit", "--output", kept)
    assert check(exported(), "--anchor", kept)[0] == 0
    for table in ("checkpoint_anchoredhead", "checkpoint_auditanchor"):
        forger.execute(f"DELETE FROM {table}".encode())
    forger.execute("DELETE FROM checkpoint_auditentry WHERE seq = 4")
    assert check(exported())[0] == 0, "nothing in the file says so"
    code, said = check(exported(), "--anchor", kept)
    assert code == 1
    assert f"stream {workflow.pk}: anchor 1 states entry 4, which is missing: its tail was cut" in said


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"anchor":1,"text":"{}","hash":"","signature":"","heads":[]}'])
def test_a_kept_anchor_that_is_none_is_one_line(
    check: Callable[..., tuple[int, str]], tmp_path: Path, content: str
) -> None:
    (tmp_path / "kept").write_text(content)
    code, said = check(exported(), "--anchor", str(tmp_path / "kept"))
    assert (code, len(said.splitlines())) == (2, 1), said


def test_the_script_needs_nothing_but_python_and_the_file(tmp_path: Path) -> None:
    chain()
    run("anchor_audit")
    for form in FORMATS:
        file = tmp_path / f"audit.{form}"
        assert run("export_audit", "--format", form, "--output", str(file)).code == 0
        alone = [sys.executable, "-I", "-S", str(SCRIPT), str(file)]
        done = subprocess.run(alone, capture_output=True, text=True, timeout=60, cwd=tmp_path, env={"PATH": "/usr/bin"})
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert done.stdout.startswith("Intact: ")


def test_the_command_writes_to_standard_output_too(check: Callable[..., tuple[int, str]]) -> None:
    chain()
    ended = run("export_audit", "--format", "csv", "--verb", "note")
    assert check(ended.out)[0] == 0
    assert ended.err == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--since", "yesterday"], "since: 'yesterday' is no time; write it as 2026-12-01T09:30"),
        (["--stream", "x", "--who", "me"], "stream: 'x' is none"),
        (["--output", "/nowhere/at/all"], "cannot be written"),
        (["--as", "ada"], "You may not export the audit"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(options: list[str], words: str) -> None:
    factories.person("ada", groups=["Operator"])
    ended = run("export_audit", *options)
    assert (ended.code, len(ended.err.splitlines())) == (1, 1)
    assert words in ended.err


def test_a_page_of_the_console_streams_the_same_file(check: Callable[..., tuple[int, str]]) -> None:
    chain()
    client = signed_in(factories.person("audrey", groups=["Auditor"]))
    answered = client.get("/audit/export?format=csv&verb=note")
    text = b"".join(answered).decode()
    assert answered["Content-Disposition"].startswith('attachment; filename="audit-')
    assert check(text)[0] == 0
    assert [entry["actor"] for entry in system_entries("export")] == ["audrey"]


def test_long_streams_are_read_in_parts(monkeypatch: pytest.MonkeyPatch, check: Callable[..., tuple[int, str]]) -> None:
    monkeypatch.setattr(audit_export, "_ROWS", 3)
    monkeypatch.setattr(audit_export, "_STREAMS", 2)
    monkeypatch.setattr(audit_anchors, "HEADS_PER_ANCHOR", 2)
    for count in (1, 3, 4, 6, 7):
        chain(*[f"reason {number}" for number in range(count)])
    audit_anchors.anchor()
    for given in ({}, {"words": "reason 3"}):
        code, said = check(exported(**given))
        assert code == 0, said
    assert "3 entries and the places of 14 left out.\n3 streams" in said


def test_its_own_ed25519_agrees_with_a_library_and_refuses_what_was_changed() -> None:
    chance = random.Random(11)
    for size in (0, 1, 64, 500):
        key, message = Ed25519PrivateKey.from_private_bytes(chance.randbytes(32)), chance.randbytes(size)
        public, signature = key.public_key().public_bytes_raw(), key.sign(message)
        assert verifier.ed25519_verify(public, message, signature)
        for place in chance.sample(range(64), 6):
            changed = bytearray(signature)
            changed[place] ^= 1 << chance.randrange(8)
            assert not verifier.ed25519_verify(public, message, bytes(changed))
        assert not verifier.ed25519_verify(public, message + b"x", signature)
        assert not verifier.ed25519_verify(chance.randbytes(32), message, signature)
    beyond = signature[:32] + (int.from_bytes(signature[32:], "little") + verifier.ORDER).to_bytes(32, "little")
    assert not verifier.ed25519_verify(public, message, beyond), "a second spelling of the same signature"
