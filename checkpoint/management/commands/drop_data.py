"""`manage.py drop_data`: what `make reset` runs."""

from __future__ import annotations

import shutil
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from checkpoint.config import preflight


class Command(BaseCommand):
    """Touches only this folder's own data, never a server that DATABASE_URL names."""

    help = "Drop the embedded database and everything else in .checkpoint."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with preflight.only_one_per_folder(settings.CHECKPOINT_HOME):
                shutil.rmtree(settings.CHECKPOINT_HOME)
        except preflight.CannotStart as error:
            raise CommandError(str(error)) from None
        self.stdout.write("Dropped. `make up` starts afresh.")
