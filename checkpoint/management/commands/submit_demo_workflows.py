"""`manage.py submit_demo_workflows`: part of `make up`, does nothing where workflows exist."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from checkpoint.config import sandbox_address
from checkpoint.models import Workflow


class Command(BaseCommand):
    """Gives a first visitor something to look at."""

    help = (
        "Submit examples/*.yaml on a database without workflows. Where the sandbox does not listen on its usual port, "
        "copies that name its port are kept in the folder `examples` of CHECKPOINT_HOME, for whoever submits one."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        copies = settings.CHECKPOINT_HOME / "examples"
        copies.mkdir(parents=True, exist_ok=True)
        originals = sorted((settings.BASE_DIR / "examples").glob("*.yaml"))
        examples = [sandbox_address.adapted(example, copies) for example in originals]
        if Workflow.objects.exists():
            return
        call_command("publish_tools", stdout=io.StringIO())
        for example in examples:
            self._submit(example)

    def _submit(self, file: Path) -> None:
        """One example that is refused keeps nothing else from being shown."""
        try:
            call_command("submit", str(file))
        except CommandError as error:
            self.stderr.write(f"{file.name} was not submitted: {error}")
