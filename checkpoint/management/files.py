"""Documents that a command is given as a file."""

from __future__ import annotations

import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from checkpoint.command_line import printable
from checkpoint.errors import SubmissionInvalid
from checkpoint.planning.documents import LARGEST_DOCUMENT, Document, format_of, read_document

REFUSED = 2


def document_in(file: str) -> Document:
    """What the file holds, or with - standard input. Raises CommandError, or SubmissionInvalid as `read_document`."""
    data = _bytes_of(file)
    return read_document(data, format_of(file, data))


def _bytes_of(file: str) -> bytes:
    """No more than what is needed to see that it is too large."""
    if file == "-":
        return sys.stdin.buffer.read(LARGEST_DOCUMENT + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(LARGEST_DOCUMENT + 1)
    except OSError as error:
        raise CommandError(
            f"{file} cannot be read: {error.strerror}; nothing was stored.", returncode=REFUSED
        ) from error


def refuse(command: BaseCommand, error: SubmissionInvalid) -> CommandError:
    """Each fault on a line of its own; the error to raise."""
    for fault in error.faults:
        command.stderr.write(printable(str(fault)))
    count = len(error.faults)
    return CommandError(f"{count} fault{'s' if count > 1 else ''}; nothing was stored.", returncode=REFUSED)
