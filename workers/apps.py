"""Tells Django about this package."""

from __future__ import annotations

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """The package as a Django app."""

    name = "workers"
    label = "workers"
