"""`manage.py artifact`: large things in and out of a workflow."""

from __future__ import annotations

import mimetypes
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet

from checkpoint import artifacts, command_line
from checkpoint.artifacts import UNKNOWN_TYPE
from checkpoint.command_line import ClearCommand, printable
from checkpoint.models import Artifact, Workflow
from checkpoint.permissions import workflows_visible_to
from checkpoint.short_ids import find
from checkpoint.storage.stored_bytes import CHUNK


class Command(ClearCommand):
    """Everything passes through in chunks."""

    help = (
        "Put a file into a workflow's artifacts, get one out, or list them. A step refers to what was put as "
        '{"artifact": "sha256:…"}. Exit codes: 0 done, 1 refused.'
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="put|get|list")
        put = actions.add_parser("put", help="store a file")
        put.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        put.add_argument("file", type=Path, help="the file, or - for standard input")
        put.add_argument("--name", help="what it is called; by default as the file")
        put.add_argument("--media-type", help="by default what the name says")
        get = actions.add_parser("get", help="write one to a file, held against its hash first")
        get.add_argument("artifact", help="the artifact's UUID, or its last 8 or more digits")
        get.add_argument("file", type=Path, help="a file that is not there yet, or - for standard output")
        listed = actions.add_parser("list", help="list those of a workflow")
        listed.add_argument("workflow", help="the workflow's UUID, or its last 8 or more digits")
        for action in (put, get, listed):
            action.add_argument("--as", dest="user", metavar="USER", help="act as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        visible = workflows_visible_to(user) if user else Workflow.objects.all()
        with command_line.clear_errors():
            {"put": self._put, "get": self._get, "list": self._list}[options["action"]](visible, user, options)

    def _put(self, visible: QuerySet[Workflow], user: User | None, options: dict[str, Any]) -> None:
        workflow, file = find(visible, options["workflow"], noun="workflow"), options["file"]
        name = options["name"] or ("standard input" if str(file) == "-" else file.name)
        kept = artifacts.bring(
            workflow.pk,
            name,
            options["media_type"] or mimetypes.guess_type(name)[0] or UNKNOWN_TYPE,
            _chunks(file),
            actor=command_line.actor(user),
            user=user,
        )
        self.stdout.write(f"sha256:{kept.sha256}")
        self.stderr.write(f"Stored {printable(kept.name)}, {kept.size:,} bytes, as artifact {kept.pk}.")

    def _get(self, visible: QuerySet[Workflow], user: User | None, options: dict[str, Any]) -> None:
        artifact = find(Artifact.objects.filter(workflow__in=visible), options["artifact"], noun="artifact")
        with artifacts.open_verified(artifact) as stored:
            _write(options["file"], iter(partial(stored.read, CHUNK), b""))

    def _list(self, visible: QuerySet[Workflow], user: User | None, options: dict[str, Any]) -> None:
        workflow = find(visible, options["workflow"], noun="workflow")
        for artifact in workflow.artifacts.order_by("id"):
            self.stdout.write(
                f"{artifact.pk}  sha256:{artifact.sha256}  {artifact.size:>12,}  {printable(artifact.name)}"
            )


def _chunks(file: Path) -> Iterator[bytes]:
    if str(file) == "-":
        yield from _read(sys.stdin.buffer)
        return
    try:
        opened = file.open("rb")
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}; nothing was stored.") from error
    with opened:
        yield from _read(opened)


def _read(stream: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(stream.read, CHUNK), b"")


def _write(file: Path, chunks: Iterable[bytes]) -> None:
    if str(file) == "-":
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    try:
        with file.open("xb") as opened:
            opened.writelines(chunks)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
