"""What a file tool writes down under a call's key before its last step, on disk, beside the files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from workers.tools.file_arguments import OURS
from workers.tools.file_place import place_at

FOLDER = f"{OURS}notes"


class Notes:
    """The notes below one root folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, key: str, attempt: int, text: str) -> None:
        """Puts the note on disk, whole or not at all."""
        with place_at(self._root, _path(key), create=True) as note:
            with note.draft(f"{note.name}.{attempt}", [text.encode()]) as draft:
                note.become(draft, only_if_absent=False)
            note.sync_folder()

    def read(self, key: str) -> str | None:
        """The note, or None where there is none."""
        try:
            with place_at(self._root, _path(key), create=False) as note:
                return note.read_text()
        except FileNotFoundError:
            return None

    def forget(self, key: str) -> None:
        """Takes the note away, once the step is verified."""
        try:
            with place_at(self._root, _path(key), create=False) as note:
                note.remove()
        except OSError:
            # A note too many is harmless: nobody inspects a verified step.
            return


def short(key: str) -> str:
    """A key as a file's name."""
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _path(key: str) -> str:
    return f"{FOLDER}/{short(key)}"
