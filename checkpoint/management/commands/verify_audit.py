"""`manage.py verify_audit`: whether the record is intact."""

from __future__ import annotations

import sys
from typing import Any

from checkpoint import audit
from checkpoint.command_line import ClearCommand
from checkpoint.models import AuditStream


class Command(ClearCommand):
    """Walks every chain and names the first broken link of each that has one."""

    help = "Check every audit chain. Exit codes: 0 all intact, 1 a link is broken."

    def handle(self, *args: Any, **options: Any) -> None:
        broken = 0
        for link in audit.broken_links():
            broken += 1
            self.stderr.write(f"{link.stream}: entry {link.seq}: {link.problem}")
        if broken:
            self.stderr.write(f"{broken} of {AuditStream.objects.count()} chains are broken.")
            sys.exit(1)
        self.stdout.write(f"{AuditStream.objects.count()} chains, every link intact.")
