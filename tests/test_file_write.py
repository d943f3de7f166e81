"""`file.write`: whole or not at all, nowhere else, and after a crash never over somebody's newer file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import RecoveryClass, Reversibility
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import ARTIFACT_MISMATCH, Absent, Found, Inconclusive, NotApplied, NotVisible, Visible
from checkpoint.planning.argument_schemas import closed, match_variant, prepare_arguments
from tests import submissions
from tests.http_driver import call
from tests.test_artifacts import BYTES, SHA256, files, folder, kept
from workers.registry import Call
from workers.tools.file_arguments import LARGEST, FileArguments
from workers.tools.file_write import FileWrite

__all__ = ["folder"]

SCHEMA = closed(FileArguments.model_json_schema())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
def tool(root: Path) -> FileWrite:
    return FileWrite(root)


def arguments(path: str = "a/b.txt", content: Any = "new", **more: Any) -> FileArguments:
    text = prepare_arguments(SCHEMA, {"path": path, "content": content, **more})
    return FileArguments.model_validate_json(text, strict=True)


REFERENCE = {"artifact": f"sha256:{SHA256}"}


def of_artifact() -> FileArguments:
    return FileArguments.model_validate_json(prepare_arguments(SCHEMA, {"path": "a/b.txt", "body": REFERENCE}))


def call_of_a_workflow() -> Call:
    """A call of a workflow that has the artifact."""
    workflow = submissions.submitted()
    kept(workflow)
    return replace(call(), workflow_id=str(workflow.pk))


def left_behind(root: Path) -> list[str]:
    """Drafts that are still there."""
    return [str(file.relative_to(root)) for file in root.rglob(".checkpoint-*") if file.is_file()]


class TestWriting:
    def test_a_file_is_written_found_and_verified(self, tool: FileWrite, root: Path) -> None:
        given, made = arguments(content="grüße\n"), call()
        receipt = tool.execute(given, made)
        content = "grüße\n".encode()
        assert (root / "a/b.txt").read_bytes() == content
        facts = {"path": "a/b.txt", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        assert receipt.facts == facts
        assert tool.inspect(given, made) == Found(receipt)
        assert tool.verify(given, made) == Visible(facts)

    def test_verification_takes_the_note_away_and_nothing_is_left(self, tool: FileWrite, root: Path) -> None:
        given, made = arguments(), call()
        tool.execute(given, made)
        assert len(list((root / ".checkpoint-notes").iterdir())) == 1
        tool.verify(given, made)
        assert list((root / ".checkpoint-notes").iterdir()) == []
        assert left_behind(root) == []

    def test_base64_brings_any_bytes(self, tool: FileWrite, root: Path) -> None:
        encoded = base64.b64encode(b"\x00\xff").decode()
        tool.execute(arguments(content=encoded, encoding="base64"), call())
        assert (root / "a/b.txt").read_bytes() == b"\x00\xff"

    def test_json_brings_any_value_as_text_that_a_person_can_read(self, tool: FileWrite, root: Path) -> None:
        tool.execute(arguments(content={"b": [1, "ü"], "a": None}, encoding="json"), call())
        text = (root / "a/b.txt").read_text()
        assert text == '{\n  "a": null,\n  "b": [\n    1,\n    "ü"\n  ]\n}\n'

    def test_an_artifact_is_written_as_it_is(self, tool: FileWrite, root: Path, folder: Path) -> None:
        given, made = of_artifact(), call_of_a_workflow()
        receipt = tool.execute(given, made)
        assert (root / "a/b.txt").read_bytes() == BYTES
        assert receipt.facts == {"path": "a/b.txt", "sha256": SHA256, "size": len(BYTES)}
        for file in files(folder):
            file.unlink()
        assert tool.inspect(given, made) == Found(receipt), "its bytes are not needed any more"
        assert isinstance(tool.verify(given, made), Visible)

    def test_of_a_damaged_artifact_nothing_is_written(self, tool: FileWrite, root: Path, folder: Path) -> None:
        made = call_of_a_workflow()
        files(folder)[0].write_bytes(BYTES[:-1] + b"x")
        with pytest.raises(NotApplied) as refused:
            tool.execute(of_artifact(), made)
        assert (refused.value.code, refused.value.permanent) == (ARTIFACT_MISMATCH, True)
        assert not root.exists()

    @pytest.mark.parametrize(
        ("given", "place"),
        [
            ({"content": "x", "body": REFERENCE}, "/content"),
            ({"body": REFERENCE, "encoding": "base64"}, "/encoding"),
            ({}, "/content"),
            ({"body": {"artifact": "sha256:1"}}, "/body/artifact"),
        ],
    )
    def test_it_is_either_content_or_an_artifact(self, given: dict[str, Any], place: str) -> None:
        with pytest.raises(ArgumentsInvalid) as refused:
            prepare_arguments(SCHEMA, {"path": "a", **given})
        assert place in [fault.path for fault in refused.value.faults]

    def test_defaults_that_were_filled_in_are_accepted_again(self) -> None:
        for given in ({"content": "x"}, {"body": REFERENCE}, {"content": None, "encoding": "json"}):
            text = prepare_arguments(SCHEMA, {"path": "a", **given})
            assert prepare_arguments(SCHEMA, json.loads(text)) == text

    @pytest.mark.parametrize("encoding", ["utf-8", "base64"])
    def test_only_json_takes_something_else_than_text(self, encoding: str) -> None:
        with pytest.raises(ArgumentsInvalid) as refused:
            arguments(content={"a": 1}, encoding=encoding)
        assert [fault.path for fault in refused.value.faults] == ["/content"]

    @pytest.mark.parametrize("content", ["not base64!", "YQ", "Ü"])
    def test_what_is_not_base64_is_refused(self, tool: FileWrite, root: Path, content: str) -> None:
        with pytest.raises(NotApplied, match="not base64") as refused:
            tool.execute(arguments(content=content, encoding="base64"), call())
        assert refused.value.permanent
        assert not root.exists()

    def test_more_than_the_limit_is_refused(self, tool: FileWrite) -> None:
        given = FileArguments(path="big", content="é" * (LARGEST // 2 + 1))
        with pytest.raises(NotApplied, match="the limit is"):
            tool.execute(given, call())

    def test_writing_the_same_again_changes_nothing(self, tool: FileWrite, root: Path) -> None:
        first = tool.execute(arguments(), call())
        before = (root / "a/b.txt").stat()
        assert tool.execute(arguments(), call()) == first
        assert (root / "a/b.txt").stat() == before

    def test_overwrite_replaces_and_a_new_file_does_not(self, tool: FileWrite, root: Path) -> None:
        tool.execute(arguments(content="old"), call())
        with pytest.raises(NotApplied, match="other content already") as refused:
            tool.execute(arguments(mode="if_absent"), call())
        assert (refused.value.code, refused.value.permanent) == ("exists", True)
        assert (root / "a/b.txt").read_text() == "old"
        tool.execute(arguments(), call())
        assert (root / "a/b.txt").read_text() == "new"

    def test_only_a_new_file_of_its_own_can_be_undone(self, tool: FileWrite) -> None:
        given, made = arguments(mode="if_absent"), call()
        receipt = tool.execute(given, made)
        assert receipt.facts["made"] == receipt.facts["sha256"]
        assert tool.execute(given, made) == receipt == tool.inspect(given, made).receipt  # type: ignore[union-attr]  # it is found
        assert "made" not in tool.execute(given, call()).facts, "it was there already, so it is somebody else's"
        assert "made" not in tool.execute(arguments(), call()).facts

    def test_a_deadline_that_passed_means_that_nothing_was_written(self, tool: FileWrite, root: Path) -> None:
        with pytest.raises(NotApplied):
            tool.execute(arguments(), call(seconds=-1))
        assert not (root / "a/b.txt").exists()

    def test_a_file_system_that_refuses_means_that_nothing_was_written(self, tool: FileWrite, root: Path) -> None:
        with pytest.raises(NotApplied) as refused:
            tool.execute(arguments(path="é" * 128), call())
        assert (refused.value.code, refused.value.permanent) == ("never_written", False)

    def test_a_later_attempt_takes_the_draft_of_an_earlier_one_away(self, tool: FileWrite, root: Path) -> None:
        made = call()
        (root / "a").mkdir(parents=True)
        crashed_execute(root, "file.write/noted", made.key)
        assert len(left_behind(root)) == 1
        tool.execute(arguments(), replace(made, attempt=2))
        tool.verify(arguments(), made)
        assert left_behind(root) == []


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "",
            "/etc/passwd",
            "../x",
            "a/../x",
            "a/..",
            "..",
            ".",
            "a/./x",
            "a//x",
            "a/",
            "a\\b",
            "a\x00b",
            "a\nb",
            "a\n",
            ".checkpoint-notes/x",
            "a/.checkpoint-x",
            "x" * 129,
            "/".join("x" * 17),
        ],
    )
    def test_the_schema_refuses_in_words(self, path: str) -> None:
        with pytest.raises(ArgumentsInvalid) as refused:
            arguments(path=path)
        assert "^" not in str(refused.value)

    @pytest.mark.parametrize("path", ["a", ".hidden", "...", "a b/ü.txt", "a/..b/c.."])
    def test_other_names_are_fine(self, tool: FileWrite, root: Path, path: str) -> None:
        tool.execute(arguments(path=path), call())
        assert (root / path).read_text() == "new"

    def test_a_symbolic_link_on_the_way_is_not_followed(self, tool: FileWrite, root: Path, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        root.mkdir()
        (root / "a").symlink_to(tmp_path / "outside")
        with pytest.raises(NotApplied, match="symbolic link") as refused:
            tool.execute(arguments(), call())
        assert refused.value.permanent
        assert list((tmp_path / "outside").iterdir()) == []
        assert isinstance(tool.inspect(arguments(), call()), Inconclusive)
        assert isinstance(tool.verify(arguments(), call()), NotVisible)

    def test_a_symbolic_link_at_the_end_is_neither_read_nor_replaced(
        self, tool: FileWrite, root: Path, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside.txt"
        outside.write_text("new")
        (root / "a").mkdir(parents=True)
        (root / "a/b.txt").symlink_to(outside)
        with pytest.raises(NotApplied, match="no regular file"):
            tool.execute(arguments(), call())
        assert isinstance(tool.verify(arguments(), call()), NotVisible)

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
    def test_a_folder_or_a_pipe_at_the_end_is_refused(self, tool: FileWrite, root: Path, make: Any) -> None:
        (root / "a").mkdir(parents=True)
        make(root / "a/b.txt")
        with pytest.raises(NotApplied, match="no regular file"):
            tool.execute(arguments(), call())


def crashed_execute(root: Path, point: str, key: str) -> None:
    """Another process writes "new" to a/b.txt, and is killed at the point."""
    plan = root.parent / "plan"
    plan.write_text(f"{point} * KILL")
    script = (
        "import sys; from pathlib import Path; import django; django.setup(); "
        "from tests.test_file_write import arguments, call, FileWrite; "
        "FileWrite(Path(sys.argv[1])).execute(arguments(), call(key=sys.argv[2]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(root), key],
        cwd=BASE_DIR,
        env={**os.environ, "CHECKPOINT_CRASH_PLAN": str(plan)},
        check=False,
    )
    assert run.returncode == -signal.SIGKILL


class TestAfterACrash:
    @pytest.fixture(autouse=True)
    def _old(self, root: Path) -> None:
        (root / "a").mkdir(parents=True)
        (root / "a/b.txt").write_text("old")

    def test_nothing_was_started(self, tool: FileWrite) -> None:
        found = tool.inspect(arguments(), call())
        assert isinstance(found, Absent)
        assert found.facts["sha256"] == hashlib.sha256(b"old").hexdigest()

    def test_killed_before_the_rename_it_did_not_happen(self, tool: FileWrite, root: Path) -> None:
        made = call()
        crashed_execute(root, "file.write/noted", made.key)
        assert (root / "a/b.txt").read_text() == "old"
        assert isinstance(tool.inspect(arguments(), made), Absent)

    def test_killed_after_the_rename_it_did(self, tool: FileWrite, root: Path) -> None:
        made = call()
        crashed_execute(root, "file.write/renamed", made.key)
        found = tool.inspect(arguments(), made)
        assert isinstance(found, Found)
        assert found.receipt.arguments_match

    @pytest.mark.parametrize("point", ["file.write/noted", "file.write/renamed"])
    def test_a_file_that_somebody_wrote_meanwhile_is_a_conflict_and_never_written_over(
        self, tool: FileWrite, root: Path, point: str
    ) -> None:
        made = call()
        crashed_execute(root, point, made.key)
        (root / "a/b.txt").write_text("newer")
        found = tool.inspect(arguments(), made)
        assert isinstance(found, Found)
        assert not found.receipt.arguments_match
        assert (root / "a/b.txt").read_text() == "newer"

    def test_a_file_that_is_gone_cannot_be_judged(self, tool: FileWrite, root: Path) -> None:
        made = call()
        crashed_execute(root, "file.write/renamed", made.key)
        (root / "a/b.txt").unlink()
        assert isinstance(tool.inspect(arguments(), made), Inconclusive)

    def test_a_new_file_s_name_that_others_took_is_a_conflict(self, tool: FileWrite) -> None:
        found = tool.inspect(arguments(mode="if_absent"), call())
        assert isinstance(found, Found)
        assert not found.receipt.arguments_match


class TestVerification:
    def test_other_content_is_not_what_was_intended(self, tool: FileWrite, root: Path) -> None:
        made = call()
        tool.execute(arguments(), made)
        (root / "a/b.txt").write_text("changed")
        seen = tool.verify(arguments(), made)
        assert isinstance(seen, NotVisible)
        assert seen.facts["size"] == len("changed")

    def test_a_missing_file_is_not_visible(self, tool: FileWrite) -> None:
        assert isinstance(tool.verify(arguments(), call()), NotVisible)


@pytest.mark.parametrize(
    ("mode", "name", "reversibility"),
    [("overwrite", "overwrite", Reversibility.IRREVERSIBLE), ("if_absent", "new file", Reversibility.COMPENSABLE)],
)
def test_the_contract_says_what_undoing_takes(mode: str, name: str, reversibility: Reversibility) -> None:
    variants = {variant.name: variant for variant in FileWrite().variants()}
    stored = arguments(mode=mode).model_dump()
    picked = match_variant([{"name": one.name, "when": one.when} for one in variants.values()], stored)
    assert picked == name
    assert variants[picked].contract.reversibility is reversibility
    assert variants[picked].contract.recovery is RecoveryClass.QUERYABLE
