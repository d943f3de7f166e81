"""`manage.py submit_demo_workflows`: part of `make up`, does nothing where workflows exist."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from checkpoint.config import sandbox_address
from checkpoint.models import Workflow


class Command(BaseCommand):
    """Gives a first visitor something to look at."""

    help = "Submit examples/*.yaml on a database without workflows."

    def handle(self, *args: Any, **options: Any) -> None:
        if Workflow.objects.exists():
            return
        call_command("publish_tools", stdout=io.StringIO())
        for example in sorted((settings.BASE_DIR / "examples").glob("*.yaml")):
            with tempfile.TemporaryDirectory() as folder:
                self._submit(sandbox_address.adapted(example, Path(folder)))

    def _submit(self, file: Path) -> None:
        """One example that is refused keeps nothing else from being shown."""
        try:
            call_command("submit", str(file))
        except CommandError as error:
            self.stderr.write(f"{file.name} was not submitted: {error}")
