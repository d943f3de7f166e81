"""`file.delete`: the file that was meant and no other, and "already gone" is not "we deleted it"."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkpoint.config.environment import BASE_DIR
from checkpoint.contracts import RecoveryClass
from checkpoint.errors import ArgumentsInvalid
from checkpoint.outcomes import Absent, Found, Inconclusive, NotApplied, NotVisible, Receipt, Visible
from checkpoint.planning.argument_schemas import prepare_arguments, template_faults
from tests.http_driver import call
from workers.publishing import declaration
from workers.registry import Call
from workers.tools.file_append import WHY, FileAppend
from workers.tools.file_delete import DeleteUncertain, FileDelete, FileDeleteArguments

OLD = hashlib.sha256(b"old").hexdigest()
FACTS = {"path": "a/b.txt", "sha256": OLD, "size": 3, "already_gone": False}
SCHEMA = declaration(FileDelete()).schema


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "files" / "a").mkdir(parents=True)
    (tmp_path / "files" / "a" / "b.txt").write_text("old")
    return tmp_path / "files"


@pytest.fixture
def tool(root: Path) -> FileDelete:
    return FileDelete(root)


def arguments(path: str = "a/b.txt", **more: Any) -> FileDeleteArguments:
    return FileDeleteArguments.model_validate_json(prepare_arguments(SCHEMA, {"path": path, **more}), strict=True)


def left_behind(root: Path) -> list[str]:
    """Whatever of the tool's own is still there."""
    return sorted(
        str(file.relative_to(root)) for file in root.rglob("*") if ".checkpoint-" in str(file) and file.is_file()
    )


class Interfering(Call):
    """A call in whose last moment before the move somebody does something."""

    def sending(self) -> None:
        file = Path(self.workflow_id)
        file.unlink()
        if self.step_name == "replace":
            file.write_text("newer")


class TestDeleting:
    def test_a_file_is_deleted_found_and_seen_to_be_gone(self, tool: FileDelete, root: Path) -> None:
        made = call()
        receipt = tool.execute(arguments(sha256=OLD), made)
        assert receipt == Receipt(OLD, FACTS)
        assert not (root / "a/b.txt").exists()
        assert tool.inspect(arguments(), made) == Found(receipt)
        assert tool.verify(arguments(), made) == Visible({"path": "a/b.txt"})
        assert left_behind(root) == []

    def test_another_content_than_the_one_that_was_meant_stays(self, tool: FileDelete, root: Path) -> None:
        with pytest.raises(NotApplied, match="other content") as refused:
            tool.execute(arguments(sha256="0" * 64), call())
        assert (refused.value.code, refused.value.permanent) == ("changed", True)
        assert (root / "a/b.txt").read_text() == "old"

    @pytest.mark.parametrize("path", ["a/none.txt", "none/b.txt"])
    def test_already_gone_is_told_apart(self, tool: FileDelete, path: str) -> None:
        made = call()
        with pytest.raises(NotApplied, match="there is no file") as refused:
            tool.execute(arguments(path), made)
        assert (refused.value.code, refused.value.permanent) == ("already_gone", True)
        receipt = tool.execute(arguments(path, already_gone="accept"), made)
        assert receipt == Receipt(None, {"path": path, "already_gone": True})
        assert isinstance(tool.verify(arguments(path), made), Visible)

    def test_executed_again_it_says_what_the_first_time_did(self, tool: FileDelete, root: Path) -> None:
        made = call()
        first = tool.execute(arguments(), made)
        (root / "a/b.txt").write_text("newer")
        assert tool.execute(arguments(), replace(made, attempt=2)) == first
        assert (root / "a/b.txt").read_text() == "newer"
        seen = tool.verify(arguments(), made)
        assert isinstance(seen, NotVisible)
        assert seen.facts["size"] == len("newer")

    def test_a_file_that_replaced_it_in_the_last_moment_is_put_back(self, tool: FileDelete, root: Path) -> None:
        made = Interfering(**{**vars(call()), "workflow_id": str(root / "a/b.txt"), "step_name": "replace"})
        with pytest.raises(NotApplied, match="it is back") as refused:
            tool.execute(arguments(), made)
        assert refused.value.code == "changed"
        assert (root / "a/b.txt").read_text() == "newer"
        assert isinstance(tool.inspect(arguments(), made), Absent)

    def test_a_file_that_vanished_in_the_last_moment_was_not_deleted_by_us(self, tool: FileDelete, root: Path) -> None:
        made = Interfering(**{**vars(call()), "workflow_id": str(root / "a/b.txt"), "step_name": "remove"})
        with pytest.raises(NotApplied) as refused:
            tool.execute(arguments(already_gone="accept"), made)
        assert (refused.value.code, refused.value.permanent) == ("never_deleted", False)
        assert isinstance(tool.inspect(arguments(), made), Absent)

    def test_a_deadline_that_passed(self, tool: FileDelete, root: Path) -> None:
        with pytest.raises(NotApplied):
            tool.execute(arguments(), call(seconds=-1))
        assert (root / "a/b.txt").exists()

    @pytest.mark.parametrize("path", ["a", "a/link", "a/../a/b.txt", "/etc/passwd", ".checkpoint-notes/x"])
    def test_only_a_regular_file_below_the_folder(
        self, tool: FileDelete, root: Path, path: str, tmp_path: Path
    ) -> None:
        (tmp_path / "outside").write_text("x")
        (root / "a/link").symlink_to(tmp_path / "outside")
        with pytest.raises((NotApplied, ArgumentsInvalid)):
            tool.execute(arguments(path), call())
        assert (tmp_path / "outside").exists()
        assert (root / "a/b.txt").exists()

    def test_a_damaged_note_makes_a_lookup_inconclusive(self, tool: FileDelete, root: Path) -> None:
        made = call()
        tool.execute(arguments(), made)
        (note,) = (root / ".checkpoint-notes").iterdir()
        note.write_text("{")
        assert isinstance(tool.inspect(arguments(), made), Inconclusive)

    def test_the_contract_says_that_it_can_be_looked_up_and_not_undone(self, tool: FileDelete) -> None:
        (variant,) = tool.variants()
        assert variant.contract.recovery is RecoveryClass.QUERYABLE
        assert variant.contract.can_verify


def crashed_execute(root: Path, point: str, key: str, signal_name: str = "KILL") -> subprocess.Popen[bytes]:
    """Another process deletes a/b.txt, and is killed or stopped at the point."""
    plan = root.parent / "plan"
    plan.write_text(f"{point} * {signal_name}")
    script = (
        "import sys, django; django.setup(); from pathlib import Path; "
        "from tests.test_file_delete import arguments, call, FileDelete; "
        "FileDelete(Path(sys.argv[1])).execute(arguments(), call(key=sys.argv[2], seconds=60))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script, str(root), key],
        cwd=BASE_DIR,
        env={**os.environ, "CHECKPOINT_CRASH_PLAN": str(plan)},
        stderr=subprocess.DEVNULL,
    )


class TestAfterACrash:
    def killed(self, root: Path, point: str) -> Call:
        made = call()
        assert crashed_execute(root, point, made.key).wait(60) == -signal.SIGKILL
        return call(key=made.key)

    def test_before_the_move_it_did_not_happen_and_the_next_attempt_does_it(self, tool: FileDelete, root: Path) -> None:
        made = self.killed(root, "file.delete/noted")
        assert isinstance(tool.inspect(arguments(), made), Absent)
        assert tool.execute(arguments(), replace(made, attempt=2)) == Receipt(OLD, FACTS)
        assert isinstance(tool.verify(arguments(), made), Visible)
        assert left_behind(root) == []

    def test_before_the_move_and_deleted_by_somebody_else_meanwhile_it_was_not_us(
        self, tool: FileDelete, root: Path
    ) -> None:
        made = self.killed(root, "file.delete/noted")
        (root / "a/b.txt").unlink()
        assert isinstance(tool.inspect(arguments(), made), Absent)

    @pytest.mark.parametrize("point", ["file.delete/moved", "file.delete/told"])
    def test_after_the_move_it_was_us_whatever_is_at_the_path_now(
        self, tool: FileDelete, root: Path, point: str
    ) -> None:
        made = self.killed(root, point)
        (root / "a/b.txt").write_text("newer")
        assert tool.inspect(arguments(), made) == Found(Receipt(OLD, FACTS))
        assert tool.execute(arguments(), replace(made, attempt=2)) == Receipt(OLD, FACTS)
        assert (root / "a/b.txt").read_text() == "newer"

    @pytest.mark.parametrize("later", ["deletes it", "is refused"])
    def test_an_attempt_that_was_paused_before_its_move_cannot_move_any_more(
        self, tool: FileDelete, root: Path, later: str
    ) -> None:
        made = call()
        paused = crashed_execute(root, "file.delete/noted", made.key, "STOP")
        try:
            os.waitpid(paused.pid, os.WUNTRACED)
            if later == "deletes it":
                tool.execute(arguments(), replace(made, attempt=2))
                (root / "a/b.txt").write_text("newer")
            else:
                with pytest.raises(NotApplied):
                    tool.execute(arguments(sha256="0" * 64), replace(made, attempt=2))
        finally:
            paused.send_signal(signal.SIGCONT)
        assert paused.wait(60) == 1
        assert (root / "a/b.txt").read_text() == ("newer" if later == "deletes it" else "old")


def test_a_file_that_was_replaced_twice_is_kept_and_a_person_is_told_where(root: Path, tool: FileDelete) -> None:
    class ReplacedTwice(Call):
        def sending(self) -> None:
            (root / "a/b.txt").unlink()
            (root / "a/b.txt").write_text("newer")

    made = ReplacedTwice(**vars(call()))
    with pytest.MonkeyPatch.context() as patch:
        real = os.rename

        def rename(*names: Any, **options: Any) -> None:
            real(*names, **options)
            (root / "a/b.txt").write_text("newest")

        patch.setattr(os, "rename", rename)
        with pytest.raises(DeleteUncertain):
            tool.execute(arguments(), made)
    assert (root / "a/b.txt").read_text() == "newest"
    found = tool.inspect(arguments(), made)
    assert isinstance(found, Found)
    assert not found.receipt.arguments_match
    assert (root / found.receipt.facts["kept_at"]).read_text() == "newer"


class TestAppend:
    @pytest.mark.parametrize("given", [{}, {"path": "a", "content": "b"}])
    def test_it_is_refused_where_it_is_submitted_with_what_to_use_instead(self, given: dict[str, Any]) -> None:
        with pytest.raises(ArgumentsInvalid) as refused:
            prepare_arguments(declaration(FileAppend()).schema, given)
        assert [fault.message for fault in refused.value.faults] == [WHY]
        assert "file.write" in WHY

    def test_a_reference_in_it_changes_nothing(self) -> None:
        given = {"path": "a", "content": {"$result": "before#/operation_id"}}
        faults = template_faults(declaration(FileAppend()).schema, given, ["/content"])
        assert [fault.message for fault in faults] == [WHY]

    def test_it_never_runs(self) -> None:
        with pytest.raises(NotApplied) as refused:
            FileAppend().execute({}, call())
        assert refused.value.permanent
