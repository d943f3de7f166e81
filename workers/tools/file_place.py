"""Files below a root folder, reached without following any symbolic link.

Every step of a path is opened relative to the folder before it, so that nothing which changes meanwhile can lead out.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter
from pathlib import Path

from django.conf import settings

from checkpoint.outcomes import NotApplied

SETTING = "CHECKPOINT_FILES_ROOT"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def files_root() -> Path:
    """The workers' folder, one and the same for all of them."""
    return Path(os.environ.get(SETTING) or settings.CHECKPOINT_HOME / "files")


@dataclass(frozen=True)
class Found:
    """A file as it is.

    Attributes:
        sha256: of its content, as 64 hexadecimal digits.
        size: bytes.
        identity: differs for any other file, and for the same one once it was written to again.
    """

    sha256: str
    size: int
    identity: str


@dataclass(frozen=True)
class Place:
    """A file's name in an open folder."""

    folder: int
    name: str

    def look(self) -> Found | None:
        """The file there, or None where there is none.

        Raises:
            NotApplied: what is there is a symbolic link, a folder, or something else that is no regular file.
            OSError: it cannot be read.
        """
        try:
            file = self._open()
        except FileNotFoundError:
            return None
        with file:
            status = os.fstat(file.fileno())
            return Found(
                sha256=hashlib.file_digest(file, "sha256").hexdigest(),
                size=status.st_size,
                identity=f"{status.st_dev}:{status.st_ino}:{status.st_mtime_ns}:{status.st_size}",
            )

    def read_text(self) -> str | None:
        """The text there, or None where there is no file."""
        try:
            file = self._open()
        except FileNotFoundError:
            return None
        with file:
            return file.read().decode()

    def remove(self) -> None:
        """Takes the name away, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder)

    def sync_folder(self) -> None:
        """Makes what was done to names in the folder survive a power cut."""
        os.fsync(self.folder)

    def become(self, draft: Place, *, only_if_absent: bool) -> None:
        """Gives the draft this name, in one step that either happens or does not.

        Raises:
            FileExistsError: the name is taken, and it was to be free.
        """
        if only_if_absent:
            os.link(draft.name, self.name, src_dir_fd=draft.folder, dst_dir_fd=self.folder, follow_symlinks=False)
        else:
            os.replace(draft.name, self.name, src_dir_fd=draft.folder, dst_dir_fd=self.folder)

    @contextmanager
    def draft(self, name: str, chunks: Iterable[bytes]) -> Iterator[Place]:
        """A file beside it that holds the content, on disk; whatever is left of it is removed afterwards."""
        draft = Place(self.folder, name)
        draft.remove()
        try:
            with draft._create() as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            yield draft
        finally:
            draft.remove()

    def _open(self) -> BufferedReader:
        if not stat.S_ISREG(os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode):
            raise refused(self.name, "is no regular file")
        # O_NOFOLLOW and O_NONBLOCK for the case that it becomes a link or a pipe in this moment.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.fdopen(os.open(self.name, flags, dir_fd=self.folder), "rb")

    def _create(self) -> BufferedWriter:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(self.name, flags, 0o644, dir_fd=self.folder), "wb")


@contextmanager
def place_at(root: Path, path: str, *, create: bool) -> Iterator[Place]:
    """Opens the folder of a relative path below the root; `create` makes the folders that are missing.

    Raises:
        NotApplied: a part of the path is a symbolic link or no folder.
        FileNotFoundError: a folder is missing and `create` is False.
    """
    *folders, name = path.split("/")
    if create:
        root.mkdir(parents=True, exist_ok=True)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            inner = _enter(folder, part, create=create)
            os.close(folder)
            folder = inner
        yield Place(folder, name)
    finally:
        os.close(folder)


def _enter(folder: int, part: str, *, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=folder)
            os.fsync(folder)
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise refused(part, "is a symbolic link or no folder") from None
        raise


def refused(name: str, why: str) -> NotApplied:
    """The error for a path that is not touched, whatever happens."""
    return NotApplied(f"nothing was done: {name} {why}", code="path_refused", permanent=True)
