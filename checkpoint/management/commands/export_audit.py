"""`manage.py export_audit`: the audit as a file that proves itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from checkpoint import command_line
from checkpoint.command_line import ClearCommand
from checkpoint.trail import audit_export
from checkpoint.trail.audit_filter import MACHINE, PEOPLE, SYSTEM, AuditFilter, read_filter
from checkpoint.trail.audit_formats import FORMATS

HELP = {
    "who": f"{PEOPLE} or {MACHINE}",
    "actor": "name of whoever acted",
    "verb": "what was done",
    "channel": "by which way: console, command, api, engine",
    "stream": f"a workflow's whole id, or {SYSTEM}",
    "words": "part of the text, in any case",
    "since": "earliest time, UTC, as 2026-12-01T09:30",
    "until": "first time that is not included",
}


class Command(ClearCommand):
    """Filters as on the page. The file can be checked with deploy/verify_export.py and nothing else."""

    help = "Export the audit with the proof of its chains. Exit codes: 0 exported, 1 not. The export is audited."

    def add_arguments(self, parser: CommandParser) -> None:
        for field in fields(AuditFilter):
            parser.add_argument(f"--{field.name}", default="", help=HELP[field.name])
        parser.add_argument("--format", choices=list(FORMATS), default="jsonl", help="jsonl (the default) or csv")
        parser.add_argument("--output", metavar="FILE", help="where to; standard output without it")
        parser.add_argument("--as", dest="user", metavar="USER", help="export as this user, with that user's rights")

    def handle(self, *args: Any, **options: Any) -> None:
        user = command_line.person(options["user"]) if options["user"] else None
        with command_line.clear_errors():
            narrowed = read_filter(options)
            records = audit_export.export(narrowed, person=user, actor=command_line.actor(user))
        lines = FORMATS[options["format"]](records)
        if options["output"] is None:
            for line in lines:
                self.stdout.write(line)
            return
        _write(lines, Path(options["output"]))
        self.stdout.write(f"Written. Check it: python3 deploy/verify_export.py {options['output']}")


def _write(lines: Iterable[str], file: Path) -> None:
    """Line ends stay as the format has them."""
    try:
        with file.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(lines)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
