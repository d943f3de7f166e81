"""`file.delete`: takes one file away below the workers' folder, if it is still the file that was meant.

"Already gone" and "we deleted it" look alike at the path. So the file is first moved, in one step, into a private
folder named by the key; a note that it was moved is put on disk before it is gone for good. After a crash: the file
there, or such a note, means that we deleted it; neither means that we did not, whatever is at the path. The note goes
when the outcome is verified.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from checkpoint.contracts import Contract, RecoveryClass, Reversibility, Variant
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
    Unanswered,
    Verification,
    Visible,
)
from workers.registry import Call
from workers.tools import file_place
from workers.tools.file_arguments import FilePath
from workers.tools.file_grave import Graves
from workers.tools.file_notes import Notes
from workers.tools.file_place import SETTING, Place, files_root, place_at
from workers.tools.http_arguments import Model

_SHA256 = Field(
    pattern=r"^[0-9a-f]{64}$(?!\n)",
    json_schema_extra={"x-must-be": "a SHA-256 as 64 hexadecimal digits in small letters"},
)


class FileDeleteArguments(Model):
    """Which file to take away.

    With `sha256` only a file with this content is taken. `already_gone` says what it means if there is none to begin
    with: a refusal, or the outcome that was wanted, recorded as what others did.
    """

    path: FilePath
    sha256: Annotated[str, _SHA256] | None = None
    already_gone: Literal["refuse", "accept"] = "refuse"


class DeleteUncertain(Unanswered):
    """The file was moved, and what became of it then needs a person's eye; the message says where it is."""


class FileDelete:
    """All workers must see one and the same folder (CHECKPOINT_FILES_ROOT)."""

    name = "file.delete"
    version = "1"
    summary = "Deletes a file below the workers' folder"
    Arguments = FileDeleteArguments
    reports_sending = True

    def __init__(self, root: Path | None = None) -> None:
        self._given = root

    def variants(self) -> Sequence[Variant]:
        """One contract: what is moved away is looked up under the key."""
        contract = Contract(
            RecoveryClass.QUERYABLE,
            Reversibility.IRREVERSIBLE,
            deadline=30.0,
            settle=1.0,
            can_inspect=True,
            can_verify=True,
            where_to_look=f"Look for the file below the workers' folder ({SETTING}), and for what is left of it in "
            ".checkpoint-deleted there.",
            facts=("path", "sha256", "size", "already_gone"),
        )
        return [Variant("delete", contract)]

    def execute(self, arguments: FileDeleteArguments, call: Call) -> Receipt:
        """Moves the file into the key's folder, notes that, and removes it there.

        Raises:
            NotApplied: nothing was deleted: there is no such file, or it is another one.
            DeleteUncertain: it was moved, and could not be dealt with as it should.
        """
        graves = Graves(self._root(), call.key)
        graves.close(up_to=call.attempt - 1)
        if moved := self._moved(call):
            return moved.receipt
        try:
            with place_at(self._root(), arguments.path, create=False) as place:
                return self._delete(place, graves, arguments, call)
        except FileNotFoundError:
            return _already_gone(arguments)
        except OSError as error:
            raise NotApplied(f"nothing was deleted: {error}", code="never_deleted") from None

    def inspect(self, arguments: FileDeleteArguments, call: Call) -> Inspection:
        """Reads the note, and looks into the key's folder; what is at the path now says nothing about this call."""
        try:
            moved = self._moved(call)
        except (OSError, NotApplied, ValueError) as error:
            return Inconclusive(f"what was noted about {arguments.path} cannot be read: {error}")
        return moved or Absent({"path": arguments.path})

    def verify(self, arguments: FileDeleteArguments, call: Call) -> Verification:
        """Looks whether there is a file at the path."""
        try:
            with place_at(self._root(), arguments.path, create=False) as place:
                there = place.look()
        except FileNotFoundError:
            there = None
        except (OSError, NotApplied) as error:
            return NotVisible(f"{arguments.path} cannot be read: {error}")
        if there:
            return NotVisible(f"there is a file {arguments.path}, put there since", _facts(arguments.path, there))
        Notes(self._root()).forget(call.key)
        return Visible({"path": arguments.path})

    def _root(self) -> Path:
        return self._given or files_root()

    def _moved(self, call: Call) -> Found | None:
        """What an attempt of this call took away."""
        noted = json.loads(Notes(self._root()).read(call.key) or "{}")
        if noted.get("gone"):
            return Found(Receipt(noted["sha256"], _facts(noted["path"], _file(noted))))
        found = Graves(self._root(), call.key).found(call.attempt)
        if found is None:
            return None
        where, there = found
        match = there.identity == noted.get("identity")
        facts = _facts(noted.get("path", ""), there)
        return Found(Receipt(there.sha256, facts if match else {**facts, "kept_at": where}, arguments_match=match))

    def _delete(self, place: Place, graves: Graves, arguments: FileDeleteArguments, call: Call) -> Receipt:
        there = place.look()
        if there is None:
            return _already_gone(arguments)
        if arguments.sha256 not in (None, there.sha256):
            message = f"nothing was deleted: {arguments.path} has other content, SHA-256 {there.sha256}"
            raise NotApplied(message, code="changed", permanent=True)
        notes, noted = Notes(self._root()), {"path": arguments.path, **asdict(there)}
        notes.write(call.key, call.attempt, json.dumps(noted))
        with graves.opened(call.attempt) as grave:
            reach("file.delete/noted", call.step_name)
            call.sending()
            _move(place, grave)
            reach("file.delete/moved", call.step_name)
            try:
                grave.sync_folder()
                place.sync_folder()
                _check(grave, place, there, arguments.path)
                notes.write(call.key, call.attempt, json.dumps({**noted, "gone": True}))
                reach("file.delete/told", call.step_name)
                grave.remove()
            except OSError as error:
                raise DeleteUncertain(f"{arguments.path} was moved away, and then: {error}") from None
        graves.close(up_to=call.attempt)
        return Receipt(there.sha256, _facts(arguments.path, there))


def _move(place: Place, grave: Place) -> None:
    try:
        os.rename(place.name, grave.name, src_dir_fd=place.folder, dst_dir_fd=grave.folder)
    except FileNotFoundError:
        message = "nothing was deleted: the file vanished in that moment, or a later attempt has taken over"
        raise NotApplied(message, code="never_deleted") from None


def _check(grave: Place, place: Place, meant: file_place.Found, path: str) -> None:
    """Puts a file back that took the place of the one which was meant, in the moment before it was moved."""
    taken = grave.look()
    if taken and taken.identity == meant.identity:
        return
    try:
        place.become(grave, only_if_absent=True)
    except FileExistsError:
        raise DeleteUncertain(
            f"{path} was replaced just before it was moved away, and again since: the file that was moved is kept"
        ) from None
    grave.remove()
    message = f"nothing was deleted: {path} was replaced in that moment; it is back in its place"
    raise NotApplied(message, code="changed", permanent=True)


def _already_gone(arguments: FileDeleteArguments) -> Receipt:
    if arguments.already_gone == "refuse":
        message = f"nothing was deleted: there is no file {arguments.path}"
        raise NotApplied(message, code="already_gone", permanent=True)
    return Receipt(facts={"path": arguments.path, "already_gone": True})


def _file(noted: dict[str, str | int]) -> file_place.Found:
    return file_place.Found(sha256=str(noted["sha256"]), size=int(noted["size"]), identity=str(noted["identity"]))


def _facts(path: str, there: file_place.Found) -> Facts:
    return {"path": path, "sha256": there.sha256, "size": there.size, "already_gone": False}
