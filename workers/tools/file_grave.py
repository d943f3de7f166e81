"""Where `file.delete` moves a file before it is gone for good: a private folder for each attempt, named by the key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workers.tools.file_arguments import OURS
from workers.tools.file_notes import short
from workers.tools.file_place import Found, Place, place_at

FOLDER = f"{OURS}deleted"
_NAME = "file"


class Graves:
    """The folders of one call's attempts, below a root folder."""

    def __init__(self, root: Path, key: str) -> None:
        self._root, self._key = root, key

    @contextmanager
    def opened(self, attempt: int) -> Iterator[Place]:
        """The attempt's folder, made where it is missing, and the place in it that is free or holds the file."""
        with place_at(self._root, self._path(attempt), create=True) as place:
            yield place

    def found(self, up_to: int) -> tuple[str, Found] | None:
        """The file that one of these attempts moved, with its path, or None."""
        for attempt in range(1, up_to + 1):
            with suppress(FileNotFoundError), place_at(self._root, self._path(attempt), create=False) as place:
                if there := place.look():
                    return self._path(attempt), there
        return None

    def close(self, *, up_to: int) -> None:
        """Takes these attempts' folders away, so that one which is still paused cannot move the file any more.

        A folder that holds a file stays.
        """
        with suppress(FileNotFoundError), place_at(self._root, f"{FOLDER}/-", create=False) as folders:
            for attempt in range(1, up_to + 1):
                with suppress(OSError):
                    os.rmdir(f"{short(self._key)}.{attempt}", dir_fd=folders.folder)

    def _path(self, attempt: int) -> str:
        return f"{FOLDER}/{short(self._key)}.{attempt}/{_NAME}"
