#!/usr/bin/env python
"""Django's command line for this project; `manage.py up` runs everything."""

import os
import sys


def main() -> None:
    """Runs one management command with the project's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "checkpoint.config.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        sys.exit(f"The database does not answer ({reason}): start it with `make up`, or set DATABASE_URL")


if __name__ == "__main__":
    main()
