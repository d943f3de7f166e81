"""`manage.py up`: what `make up` runs."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from checkpoint.config import supervisor


class Command(BaseCommand):
    """Needs no database itself, so it can start one."""

    help = "Start the database, web, worker, scheduler and sandbox, and stop them all on Ctrl-C."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(supervisor.main())
