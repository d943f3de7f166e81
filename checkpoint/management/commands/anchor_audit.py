"""`manage.py anchor_audit`: signs how far every audit chain has come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from checkpoint import command_line
from checkpoint.command_line import ClearCommand
from checkpoint.models import AuditAnchor
from checkpoint.trail import audit_anchors


class Command(ClearCommand):
    """What the scheduler does every few minutes, now; with --output also a copy to keep elsewhere."""

    help = "Sign the heads of the audit chains that changed since the last anchor. Exit codes: 0 done, 1 not signed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--output", metavar="FILE", help="write the newest anchor there: keep it on another machine"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        anchors, streams, more = 0, 0, True
        while more:
            with command_line.clear_errors():
                made = audit_anchors.anchor()
            anchors, streams, more = anchors + made.anchors, streams + made.streams, made.more
        self.stdout.write(f"{anchors} anchors for {streams} streams that have changed.")
        newest = audit_anchors.newest()
        if newest is None:
            self.stdout.write("There are no entries to anchor yet.")
            return
        self.stdout.write(f"Newest: anchor {newest.number}, {newest.at:%Y-%m-%d %H:%M:%S} UTC, {newest.hash}")
        if options["output"]:
            self._write(newest, Path(options["output"]))

    def _write(self, newest: AuditAnchor, file: Path) -> None:
        heads = newest.heads.order_by("stream_id").values_list("stream_id", "seq", "hash")
        kept = {
            "anchor": newest.number,
            "text": newest.text,
            "hash": newest.hash,
            "signature": newest.signature,
            "heads": [[str(stream), seq, hash_] for stream, seq, hash_ in heads],
        }
        try:
            file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        self.stdout.write(f"Written to {file}. `manage.py verify_audit --anchor {file}` holds it against the record.")
