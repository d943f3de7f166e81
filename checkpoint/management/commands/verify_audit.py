"""`manage.py verify_audit`: whether the record is intact."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from checkpoint import audit, command_line
from checkpoint.command_line import ClearCommand
from checkpoint.models import AuditStream
from checkpoint.trail import anchor_checks, audit_anchors
from checkpoint.trail.anchor_checks import AnchorProblem


class Command(ClearCommand):
    """Walks every chain, names the first broken link of each that has one, and holds the chains against the anchors."""

    help = "Check every audit chain and anchor. Exit codes: 0 all intact, 1 a link or an anchor is broken."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--anchor", metavar="FILE", help="an anchor that was kept elsewhere")
        parser.add_argument("--key", default="", metavar="HEX", help="the only public key that may have signed")

    def handle(self, *args: Any, **options: Any) -> None:
        kept = _read(options["anchor"]) if options["anchor"] else None
        broken = 0
        for link in audit.broken_links():
            broken += 1
            self.stderr.write(f"{link.stream}: entry {link.seq}: {link.problem}")
        wrong = 0
        with command_line.clear_errors():
            for found in _anchor_problems(kept, options["key"]):
                wrong += 1
                self.stderr.write(f"{found.about}: {found.problem}")
        chains = AuditStream.objects.count()
        if broken or wrong:
            self.stderr.write(f"{broken} of {chains} chains are broken; anchors prove {wrong} things wrong.")
            sys.exit(1)
        self.stdout.write(f"{chains} chains, every link intact.")
        self._say_anchors()

    def _say_anchors(self) -> None:
        newest = audit_anchors.newest()
        if newest is None:
            self.stdout.write("No anchor yet: a cut tail would not be noticed. `manage.py anchor_audit` makes one.")
            return
        self.stdout.write(
            f"{newest.number} anchors, every one holds; the newest is of {newest.at:%Y-%m-%d %H:%M:%S} UTC, signed with"
            f" the key {json.loads(newest.text)['key']}. {anchor_checks.unanchored()} chains have grown since."
        )


def _anchor_problems(kept: dict[str, Any] | None, trusted_key: str) -> Iterator[AnchorProblem]:
    yield from anchor_checks.problems(trusted_key=trusted_key.strip().lower())
    if kept is not None:
        yield from anchor_checks.kept_anchor_problems(kept)


def _read(file: str) -> dict[str, Any]:
    try:
        kept = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} cannot be read as an anchor: {error}") from error
    if not isinstance(kept, dict):
        raise CommandError(f"{file} is no anchor as `anchor_audit --output` writes it.")
    return kept
