"""`manage.py state_charts`: writes docs/states.md from the table of states."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from checkpoint.management.state_charts import page

PAGE = settings.BASE_DIR / "docs" / "states.md"


class Command(BaseCommand):
    """Draws the charts again, after a state or an arrow changed."""

    help = "Write docs/states.md from checkpoint/states.py."

    def handle(self, *args: Any, **options: Any) -> None:
        PAGE.write_text(page(), encoding="utf-8")
        self.stdout.write(f"Wrote {PAGE.relative_to(settings.BASE_DIR)}.")
