"""`manage.py migrate_database`: `migrate` as the owner, which first looks whether the database is from the future."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader


class Command(BaseCommand):
    """Run with CHECKPOINT_AS_OWNER=1."""

    help = "Apply migrations; refuse a database that a newer version of Checkpoint has changed."

    def handle(self, *args: Any, **options: Any) -> None:
        loader = MigrationLoader(connection)
        unknown = sorted(
            f"{app}.{name}"
            for app, name in loader.applied_migrations or {}
            if app in loader.migrated_apps and (app, name) not in (loader.disk_migrations or {})
        )
        if unknown:
            raise CommandError(
                f"This database was changed by another version of Checkpoint (it has {', '.join(unknown)}): "
                "run that version, or drop the data with `make reset`"
            )
        call_command("migrate", verbosity=0, interactive=False)
