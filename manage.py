#!/usr/bin/env python
"""Django's command line for this project; `manage.py up` runs everything."""

import os
import sys


def main() -> None:
    """Runs one management command with the project's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "checkpoint.config.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
