"""`manage.py create_demo_people`: part of `make up`, does nothing where users exist."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from checkpoint.management.demo_people import create_demo_people


class Command(BaseCommand):
    """Creates the demo people and prints their passwords, this once."""

    help = "Create demo users on a database without users and print their passwords once."

    def handle(self, *args: Any, **options: Any) -> None:
        people = create_demo_people()
        if people:
            self.stdout.write("\nPeople to log in as (shown only now; `manage.py changepassword NAME` sets another):")
        for person in people:
            self.stdout.write(f"  {person.username:<8} {person.password}   {person.group}")
