"""`file.write`: writes one file below the workers' folder, whole or not at all.

Recovery. Content at the path that is the wanted one means that the effect is there. Other content means one of three:
the write never came to its last step; it did, and somebody wrote over it since; or it was to be a new file and the name
was taken. Writing again would destroy somebody's newer file in the second case. So just before its last step a write
notes, on disk and under its key, which file it is about to replace. After a crash: no note, or the noted file still in
place: nothing happened. Anything else: a person is asked. The note goes when the file is verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from checkpoint.contracts import Compensation, Contract, RecoveryClass, Reversibility, Variant
from checkpoint.crash_points import reach
from checkpoint.outcomes import (
    Absent,
    Facts,
    Found,
    Inconclusive,
    Inspection,
    NotApplied,
    NotVisible,
    Receipt,
    Verification,
    Visible,
)
from workers.registry import Call
from workers.tools import file_place
from workers.tools.file_arguments import OURS, Content, FileArguments, content_of, wanted_sha256
from workers.tools.file_notes import Notes, short
from workers.tools.file_place import SETTING, Place, files_root, place_at

_NO_FILE = "no file"


class FileWrite:
    """All workers must see one and the same folder (CHECKPOINT_FILES_ROOT)."""

    name = "file.write"
    version = "1"
    summary = "Writes a file below the workers' folder"
    reports_sending = True
    Arguments = FileArguments

    def __init__(self, root: Path | None = None) -> None:
        self._given = root

    def variants(self) -> Sequence[Variant]:
        """A new file can be taken away again, if it still is what was written; what was written over is gone."""
        new = {"properties": {"mode": {"const": "if_absent"}}, "required": ["mode"]}
        return [
            Variant("new file", _contract(Reversibility.COMPENSABLE, compensation=_TAKE_AWAY), new),
            Variant("overwrite", _contract(Reversibility.IRREVERSIBLE)),
        ]

    def execute(self, arguments: FileArguments, call: Call) -> Receipt:
        """Writes a draft in the same folder and renames it.

        Raises:
            NotApplied: it did not come to the rename, or the name was taken.
            WriteUncertain: it failed at the rename or after it.
        """
        with content_of(arguments, call) as content:
            try:
                with place_at(self._root(), arguments.path, create=True) as place:
                    ours = self._put(place, content, arguments, call)
            except OSError as error:
                raise NotApplied(f"nothing was written: {error}", code="never_written") from None
            return _receipt(arguments.path, content.sha256, content.size, made=ours and arguments.mode == "if_absent")

    def inspect(self, arguments: FileArguments, call: Call) -> Inspection:
        """Compares the file with the wanted content, and with the file that this write was to replace."""
        try:
            there = self._look(arguments)
            noted = Notes(self._root()).read(call.key)
        except (OSError, NotApplied) as error:
            return Inconclusive(f"{arguments.path} cannot be read: {error}")
        if there and there.sha256 == wanted_sha256(arguments):
            made = noted is not None and arguments.mode == "if_absent"
            return Found(_receipt(arguments.path, there.sha256, there.size, made=made))
        if there and arguments.mode == "if_absent":
            return Found(_receipt(arguments.path, there.sha256, there.size, match=False))
        if noted is None or noted == (there.identity if there else _NO_FILE):
            return Absent(_facts(arguments.path, there.sha256, there.size) if there else {})
        if there is None:
            return Inconclusive(f"{arguments.path} is gone: taken away since, or before this write came to it")
        return Found(_receipt(arguments.path, there.sha256, there.size, match=False))

    def verify(self, arguments: FileArguments, call: Call) -> Verification:
        """Reads the file again and compares its hash."""
        try:
            there = self._look(arguments)
        except (OSError, NotApplied) as error:
            return NotVisible(f"{arguments.path} cannot be read: {error}")
        if there is None:
            return NotVisible(f"there is no file {arguments.path}")
        facts = _facts(arguments.path, there.sha256, there.size)
        if there.sha256 != wanted_sha256(arguments):
            return NotVisible(f"{arguments.path} has other content", facts)
        Notes(self._root()).forget(call.key)
        return Visible(facts)

    def _root(self) -> Path:
        return self._given or files_root()

    def _put(self, place: Place, content: Content, arguments: FileArguments, call: Call) -> bool:
        """Whether the file is this step's, and not one that had the wanted content already."""
        only_if_absent = arguments.mode == "if_absent"
        for earlier in range(1, call.attempt):
            # The draft of an attempt that may still be paused somewhere: without it, its rename cannot happen any more.
            Place(place.folder, _draft_name(call.key, earlier)).remove()
        before = place.look()
        if before and before.sha256 == content.sha256:
            return Notes(self._root()).read(call.key) is not None
        if before and only_if_absent:
            raise _taken(arguments.path)
        with place.draft(_draft_name(call.key, call.attempt), content.chunks) as draft:
            Notes(self._root()).write(call.key, call.attempt, before.identity if before else _NO_FILE)
            reach("file.write/noted", call.step_name)
            call.sending()
            _rename(draft, place, arguments.path, only_if_absent=only_if_absent)
            reach("file.write/renamed", call.step_name)
        return True

    def _look(self, arguments: FileArguments) -> file_place.Found | None:
        try:
            with place_at(self._root(), arguments.path, create=False) as place:
                return place.look()
        except FileNotFoundError:
            return None


class WriteUncertain(Exception):
    """The rename failed, or may not be on disk: the file may be there or not."""


def _rename(draft: Place, place: Place, path: str, *, only_if_absent: bool) -> None:
    try:
        place.become(draft, only_if_absent=only_if_absent)
        place.sync_folder()
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise WriteUncertain(f"{path}: {error}") from error


def _taken(path: str) -> NotApplied:
    return NotApplied(
        f"nothing was written: there is a file {path} with other content already", code="exists", permanent=True
    )


# Where the file was there already, no step made it: the fact is missing, and no such call can be made.
_TAKE_AWAY = Compensation("file.delete", {"path": {"$input": "/path"}, "sha256": {"$result": "effect#/facts/made"}})


def _contract(reversibility: Reversibility, *, compensation: Compensation | None = None) -> Contract:
    return Contract(
        recovery=RecoveryClass.QUERYABLE,
        reversibility=reversibility,
        deadline=30.0,
        settle=1.0,
        can_inspect=True,
        can_verify=True,
        where_to_look=f"Look at the file below the workers' folder ({SETTING}) and compare its SHA-256.",
        facts=("path", "sha256", "size", "made"),
        compensation=compensation,
    )


def _receipt(path: str, sha256: str, size: int, *, match: bool = True, made: bool = False) -> Receipt:
    facts = _facts(path, sha256, size) | ({"made": sha256} if made else {})
    return Receipt(operation_id=sha256, facts=facts, arguments_match=match)


def _facts(path: str, sha256: str, size: int) -> Facts:
    return {"path": path, "sha256": sha256, "size": size}


def _draft_name(key: str, attempt: int) -> str:
    return f"{OURS}{short(key)}.{attempt}"
